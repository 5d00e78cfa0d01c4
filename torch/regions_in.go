package torch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// receive maps the storage of nbytes bytes in f and returns an empty tensor on it. It takes
// ownership of f. For a file without a name, name is "" and manager is nil. The caller must
// create its views from the storage of the tensor, and then close the tensor. The error wraps
// [ErrTruncated] if the file is too short.
func (t *regionTable) receive(f *os.File, nbytes int, name string, manager []byte) (*tensor.Tensor, error) {
	id, size, err := sys.Identify(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recordReceived(name)
	r := t.byID[id]
	if r == nil {
		r = &region{file: f, nbytes: nbytes, id: id, name: name, manager: manager}
		err = t.mapTheirs(r, size)
	} else {
		f.Close()
		err = t.receiveAgain(r)
	}
	if err != nil {
		return nil, err
	}
	return t.tenantOf(r)
}

// receiveAgain handles a region that was received once more. It releases the reference of the
// message, because the region holds one already. The caller must hold t.mu.
func (t *regionTable) receiveAgain(r *region) error {
	if r.name == "" {
		return nil
	}
	return Guard(r.dropReference)
}

// tenantOf returns an empty tensor on the storage of r, which the caller must close. It creates
// the storage if there is none or the existing one is about to end. The caller must hold t.mu.
func (t *regionTable) tenantOf(r *region) (*tensor.Tensor, error) {
	if s := r.storage.Value(); s != nil {
		if hold, err := s.View(tensor.Uint8, []int{0}, []int{1}, 0); err == nil {
			return hold, nil
		}
	}
	if at := slices.Index(t.idle, r); at >= 0 {
		t.idle = slices.Delete(t.idle, at, at+1)
	}
	return t.addStorage(r).View(tensor.Uint8, []int{0}, []int{1}, 0)
}

// mapTheirs maps a file of size bytes that PyTorch created and adds it to the table. It closes
// the file on an error, which wraps [ErrTruncated] if the file is shorter than the storage. The
// caller must hold t.mu.
func (t *regionTable) mapTheirs(r *region, size int64) (err error) {
	whole := int64(r.headerBytes()) + int64(r.nbytes)
	if size < whole {
		err = fmt.Errorf("map storage: it needs %d bytes, its file has %d: %w", whole, size, ErrTruncated)
	} else {
		r.mem, err = sys.Map(r.file, int(whole))
	}
	if err != nil {
		r.file.Close()
		return err
	}
	t.byID[r.id] = r
	return nil
}

// openNamed opens shared memory by a name from a message. The caller must close the file. The
// error wraps [ErrProtocol] if the name is invalid, and [ErrGone] if the file does not exist.
func openNamed(name string) (*os.File, error) {
	bare, ok := strings.CutPrefix(name, "/")
	if !ok || bare == "" || bare == "." || bare == ".." || strings.ContainsAny(bare, "/\x00") || len(bare) > 255 {
		return nil, protocolError("invalid shared memory name %q", name)
	}
	f, err := os.OpenFile(shmDir+name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open %s: %w", name, ErrGone)
	}
	return f, err
}
