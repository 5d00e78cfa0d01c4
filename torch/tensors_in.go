package torch

import (
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// decodeTensor decodes rebuild_tensor(class, typed storage, (offset, size, stride,
// requires_grad)) to a *tensor.Tensor, or to an *autograd.Param for class Parameter. The caller
// must close the tensor.
func (i *importer) decodeTensor(o *pickle.Object) (any, error) {
	class, err := value.Arg[python.Global](o, 0)
	if err != nil {
		return nil, err
	}
	if class != tensorClass && class != parameterClass {
		return nil, unsupported("tensor has class %s: send .as_subclass(torch.Tensor)", class)
	}
	typed, err := value.Arg[*pickle.Object](o, 1)
	if err != nil {
		return nil, err
	}
	layout, err := value.Arg[python.Tuple](o, 2)
	if err != nil || len(layout) < 4 {
		return nil, protocolError("layout of a tensor has %d parts, want at least 4", len(layout))
	}
	hold, dt, err := i.decodeTypedStorage(typed)
	if err != nil {
		return nil, err
	}
	t, err := viewStorage(hold, dt, layout)
	if err != nil || class == tensorClass {
		return t, err
	}
	learned, ok := layout[3].(bool)
	if !ok {
		t.Close()
		return nil, protocolError("requires_grad is %T, want a bool", layout[3])
	}
	return &autograd.Param{T: t, Frozen: !learned}, nil
}

func viewStorage(hold *tensor.Tensor, dt tensor.DType, layout python.Tuple) (*tensor.Tensor, error) {
	offset, ok := layout[0].(int64)
	if !ok || offset < 0 || offset > 1<<48 {
		return nil, protocolError("offset of a tensor is %v, out of range", layout[0])
	}
	size, err := value.Numbers(layout[1])
	if err != nil {
		return nil, err
	}
	stride, err := value.Numbers(layout[2])
	if err != nil {
		return nil, err
	}
	return hold.Storage().View(dt, size, stride, int(offset))
}

// decodeTypedStorage decodes rebuild_typed_storage(storage, dtype), or the older
// rebuild_typed_storage_child(storage, class). hold is an empty tensor on the storage, which the
// importer closes.
func (i *importer) decodeTypedStorage(o *pickle.Object) (hold *tensor.Tensor, dt tensor.DType, err error) {
	untyped, err := value.Arg[*pickle.Object](o, 0)
	if err != nil {
		return nil, 0, err
	}
	kind, err := value.Arg[python.Global](o, 1)
	if err != nil {
		return nil, 0, err
	}
	old, isClass := value.StorageTypes[kind.Name]
	switch {
	case o.Class == rebuildTyped:
		dt, err = value.DTypeOf(kind)
	case o.Class == rebuildChild && isClass && kind.Module == "torch":
		dt = old
	default:
		err = protocolError("%s is not a typed storage", o.Class)
	}
	if err != nil {
		return nil, 0, err
	}
	hold, err = i.storageOf(untyped)
	return hold, dt, err
}

// decodeBareStorage decodes a storage that was sent by itself, to a *tensor.Tensor with one
// dimension, which the caller must close. The dtype of an untyped storage is uint8.
func (i *importer) decodeBareStorage(o *pickle.Object) (any, error) {
	dt := tensor.Uint8
	var hold *tensor.Tensor
	var err error
	if o.Class == rebuildTyped || o.Class == rebuildChild {
		hold, dt, err = i.decodeTypedStorage(o)
	} else {
		hold, err = i.storageOf(o)
	}
	if err != nil {
		return nil, err
	}
	return hold.Storage().View(dt, []int{len(hold.Storage().Bytes()) / dt.Size()}, []int{1}, 0)
}

// storageOf returns an empty tensor on an untyped storage, the same one for each occurrence in
// the message. The importer closes it after the message has been decoded.
func (i *importer) storageOf(o *pickle.Object) (hold *tensor.Tensor, err error) {
	if hold := i.storages[o]; hold != nil {
		return hold, nil
	}
	switch o.Class {
	case rebuildFD:
		hold, err = i.decodeStorageFD(o)
	case rebuildFilename:
		hold, err = i.decodeStorageFilename(o)
	case rebuildEmpty:
		hold = tensor.New(tensor.Uint8, 0)
	default:
		err = protocolError("%s is not a storage", o.Class)
	}
	if err != nil {
		return nil, err
	}
	i.storages[o] = hold
	return hold, nil
}

// decodeStorageFD decodes rebuild_storage_fd(class, descriptor, bytes) to an empty tensor on the
// storage, which the caller must close.
func (i *importer) decodeStorageFD(o *pickle.Object) (*tensor.Tensor, error) {
	df, err := value.Arg[*pickle.Object](o, 1)
	if err != nil {
		return nil, err
	}
	n, err := storageSize(o, 2)
	if err != nil {
		return nil, err
	}
	var f *os.File
	if fd, ok := i.inheritedFD(df); ok { // duplicate it, because another view may refer to it again
		f, err = sys.DuplicateNumber(fd)
	} else {
		f, err = i.fetch(df)
	}
	if err != nil {
		return nil, err
	}
	return regions.receive(f, n, "", nil)
}

// decodeStorageFilename decodes rebuild_storage_filename(class, manager, name, bytes) to an
// empty tensor on the storage, which the caller must close. The error wraps [ErrGone] if the
// file no longer exists. It wraps [ErrUnsupported] if there is a fifth argument, which older
// versions of PyTorch send: the size is then in elements.
func (i *importer) decodeStorageFilename(o *pickle.Object) (*tensor.Tensor, error) {
	manager, err := value.Arg[[]byte](o, 1)
	if err != nil {
		return nil, err
	}
	name, err := value.Arg[[]byte](o, 2)
	if err != nil {
		return nil, err
	}
	n, err := storageSize(o, 3)
	if err != nil {
		return nil, err
	}
	if len(o.Args) > 4 && o.Args[4] != nil {
		return nil, unsupported("storage in the format of torch 1.12 and older")
	}
	f, err := openNamed(string(name))
	if err != nil {
		return nil, err
	}
	return regions.receive(f, n, string(name), manager)
}

func storageSize(o *pickle.Object, at int) (int, error) {
	n, err := value.Arg[int64](o, at)
	if err == nil && (n < 0 || n > 1<<48) {
		err = protocolError("storage size is %d bytes, out of range", n)
	}
	return int(n), err
}

// fetch fetches the descriptor of a DupFd from the resource sharer of its sender, which has it
// only once. The caller must close the file. The error wraps [ErrGone] if the sender no longer
// has it, and [ErrNoKey] if there is no authkey.
func (i *importer) fetch(o *pickle.Object) (*os.File, error) {
	i.fetched[o] = true
	state, _ := o.State.(*python.Dict)
	id, _ := state.Get("_id")
	pair, _ := id.(python.Tuple)
	if o.Class != sharedFD || len(pair) != 2 {
		return nil, protocolError("%s does not announce a descriptor", o.Class)
	}
	key, ok := pair[1].(int64)
	if !ok {
		return nil, protocolError("key of a descriptor is %T, want an int", pair[1])
	}
	addr, err := fromPython(pair[0])
	if err != nil {
		return nil, err
	}
	f, err := fetchDescriptor(addr, key, i.opts.AuthKey)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	return f, nil
}
