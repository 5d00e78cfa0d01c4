package torch

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// encodeTensor encodes rebuild_tensor(class, typed storage, (offset, size, stride,
// requires_grad)), or None if t is nil. learned is requires_grad. The error wraps
// [ErrUnsupported] if learned is true for a dtype without gradients in PyTorch, and [ErrArena]
// for memory of a Shoal domain.
func (e *exporter) encodeTensor(t *tensor.Tensor, class python.Global, learned bool) (any, error) {
	if t == nil {
		return nil, nil
	}
	if learned && !slices.Contains(learnable, t.DType()) {
		return nil,
			unsupported("trainable parameter has dtype %v, for which PyTorch has no gradients: freeze it", t.DType())
	}
	if t.Device() != nil {
		return e.shareCUDA(t, class, learned)
	}
	untyped, err := e.encodeStorage(t)
	if err != nil {
		return nil, err
	}
	typed := &pickle.Object{Class: rebuildTyped, Args: python.Tuple{untyped, named("torch." + t.DType().String())}}
	layout := python.Tuple{t.Offset(), value.Sizes(t.Shape()), value.Sizes(t.Strides()), learned}
	return &pickle.Object{Class: rebuildTensor, Args: python.Tuple{class, typed, layout}}, nil
}

// learnable lists the dtypes that support gradients in PyTorch.
var learnable = []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64,
	tensor.Complex64, tensor.Complex128}

// encodeStorage encodes the storage of a tensor, once for all tensors on it. It moves a storage
// in the Go heap to memory that PyTorch can map. The error is [ErrArena] for memory of a Shoal
// domain.
func (e *exporter) encodeStorage(t *tensor.Tensor) (*pickle.Object, error) {
	s := t.Storage()
	if o := e.storages[s]; o != nil {
		return o, nil
	}
	o, err := e.newStorage(s)
	if err == nil {
		e.storages[s] = o
	}
	return o, err
}

func (e *exporter) newStorage(s *tensor.Storage) (*pickle.Object, error) {
	if len(s.Bytes()) == 0 {
		return &pickle.Object{Class: rebuildEmpty, Args: python.Tuple{untypedStorage}}, nil
	}
	home, ok := foreignTensors.LoanOf(s).(tenant)
	if !ok {
		err := regions.moveStorage(s, e.opts.Strategy == FileSystem)
		if errors.Is(err, tensor.ErrForeign) {
			err = ErrArena
		}
		if err != nil {
			return nil, err
		}
		home = foreignTensors.LoanOf(s).(tenant)
	}
	if home.name != "" {
		return e.encodeStorageFilename(home.region)
	}
	return e.encodeStorageFD(home.region)
}

// encodeStorageFilename encodes rebuild_storage_filename, and adds the message's reference to
// the region, which withdrawMessage drops. An empty manager means the receiver's own. The error
// wraps [ErrGone] if the name has been removed.
func (e *exporter) encodeStorageFilename(r *region) (*pickle.Object, error) {
	if !r.isNamed() {
		return nil, fmt.Errorf("name %s: %w", r.name, ErrGone)
	}
	if err := Guard(func() { r.refCount().Add(1) }); err != nil {
		return nil, err
	}
	e.undoing = append(e.undoing, func() { Guard(r.dropReference) })
	manager := append([]byte{}, r.manager...)
	return &pickle.Object{Class: rebuildFilename,
		Args: python.Tuple{untypedStorage, manager, []byte(r.name), r.nbytes}}, nil
}

// encodeStorageFD encodes rebuild_storage_fd for a region without a name.
func (e *exporter) encodeStorageFD(r *region) (*pickle.Object, error) {
	df, err := e.encodeInFlight(r)
	if err != nil {
		return nil, err
	}
	return &pickle.Object{Class: rebuildFD, Args: python.Tuple{untypedStorage, df, r.nbytes}}, nil
}

// encodeInFlight encodes a descriptor of r, a region without a name, which the receiver opens
// through /proc or fetches from the resource sharer. A region that is in flight through /proc is
// sent through the resource sharer, because the kernel may merge two notifications of openings
// into one, and the region would then be considered in flight forever. The error is [ErrNoKey]
// if the resource sharer is needed and there is no authkey.
func (e *exporter) encodeInFlight(r *region) (*pickle.Object, error) {
	proc := e.opts.Strategy == Proc || e.opts.Strategy == Auto && e.peer.seesProc
	if proc && !(len(e.opts.AuthKey) > 0 && regions.openLater(r)) {
		return e.encodeProcDescriptor(r)
	}
	regions.expectOpening(r, nil)
	again, err := sys.Reopen(r.file)
	if err != nil {
		regions.revertExpected(r)
		return nil, err
	}
	regions.updateOpenings() // before the kernel can merge this opening with the receiver's
	return e.offerDescriptor(again)
}

// offerDescriptor gives f to the resource sharer, which then owns it, and encodes the DupFd that
// fetches it. It closes f on an error, which is [ErrNoKey] if there is no authkey.
func (e *exporter) offerDescriptor(f *os.File) (*pickle.Object, error) {
	s, err := sharerFor(e.opts.AuthKey)
	if err != nil {
		f.Close()
		return nil, err
	}
	key := s.addDescriptor(f)
	e.undoing = append(e.undoing, func() { s.withdrawKey(key) })
	return newInstance(sharedFD, python.NewDict("_id", python.Tuple{s.address(), key})), nil
}

// encodeProcDescriptor encodes an object with a detach method that opens the descriptor of r in
// the /proc of this process. r is then in flight until the receiver has opened it or ended.
func (e *exporter) encodeProcDescriptor(r *region) (*pickle.Object, error) {
	regions.expectOpening(r, &e.peer.process)
	e.undoing = append(e.undoing, func() { regions.revertExpected(r) })
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), r.file.Fd())
	open := &pickle.Object{Class: posixOpen, Args: python.Tuple{path, os.O_RDWR | closeOnExec}}
	return &pickle.Object{Class: inheritedFD, Args: python.Tuple{open}}, nil
}

// closeOnExec is O_CLOEXEC on Linux.
const closeOnExec = 0o2000000
