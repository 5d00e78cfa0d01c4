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

// receive returns a tensor of no elements on the storage in the file f, which becomes the table's.
// The caller views the storage of the tensor, and closes the tensor.
func (t *regionTable) receive(f *os.File, nbytes int, name string, manager []byte) (*tensor.Tensor, error) {
	id, size, err := sys.Identify(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.came(name)
	r := t.byID[id]
	if r == nil {
		r = &region{file: f, nbytes: nbytes, id: id, name: name, manager: manager}
		err = t.mapTheirs(r, size)
	} else {
		f.Close()
		err = t.again(r)
	}
	if err != nil {
		return nil, err
	}
	return t.tenantOf(r)
}

// again takes a region that has arrived once more. It gives up the reference of the message,
// because this process has one already.
func (t *regionTable) again(r *region) error {
	if r.name == "" {
		return nil
	}
	return Guard(r.drop)
}

// tenantOf views the storage on r. It makes a new storage if there is none or the present one is
// about to end.
func (t *regionTable) tenantOf(r *region) (*tensor.Tensor, error) {
	if s := r.storage.Value(); s != nil {
		if hold, err := s.View(tensor.Uint8, []int{0}, []int{1}, 0); err == nil {
			return hold, nil
		}
	}
	if at := slices.Index(t.idle, r); at >= 0 {
		t.idle = slices.Delete(t.idle, at, at+1)
	}
	return t.settle(r).View(tensor.Uint8, []int{0}, []int{1}, 0)
}

// mapTheirs maps a file of PyTorch's, which is closed on an error.
func (t *regionTable) mapTheirs(r *region, size int64) (err error) {
	whole := int64(r.header()) + int64(r.nbytes)
	if size < whole {
		err = fmt.Errorf("map a storage of %d bytes in a file of %d: %w", whole, size, ErrTruncated)
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

// openNamed opens the file of a name that came in a message.
func openNamed(name string) (*os.File, error) {
	bare, ok := strings.CutPrefix(name, "/")
	if !ok || bare == "" || bare == "." || bare == ".." || strings.ContainsAny(bare, "/\x00") || len(bare) > 255 {
		return nil, protocolError("%q is no name of shared memory", name)
	}
	f, err := os.OpenFile(shmDir+name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open %s: %w", name, ErrGone)
	}
	return f, err
}
