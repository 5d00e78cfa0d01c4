package tensor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A file is an open file mapped as tensor memory. It is the holder of one storage, or of several
// storages through a part for each.
type file struct {
	*os.File
	id     sys.FileID
	bytes  []byte
	shared bool
	parts  atomic.Int64 // number of storages in the file, if there are several
	ended  atomic.Bool
}

// sizeMismatch returns the *encoding.FileError, which wraps ErrFile, for a file of have bytes
// instead of want. why is the reason.
func (f *file) sizeMismatch(have, want int64, why string) error {
	return sizeMismatchOf(f.Name(), have, want, why)
}

func sizeMismatchOf(path string, have, want int64, why string) error {
	return &encoding.FileError{Path: path, Offset: have, Err: fmt.Errorf("%w: %[3]s: want %[2]d bytes",
		ErrFile, want, why)}
}

// FromFile returns a tensor over a memory-mapped file, like torch.from_file with shared=False. The
// file is only read, and writes stay in the tensor. When the tensor is sent or shared, its elements
// are copied to shared memory once, as for tensors on the heap. The caller must close the tensor.
//
// The error is an [*encoding.FileError] that wraps [ErrFile] if the file is too short or is not a
// regular file; its Offset is the end of the file. If the file is truncated later, operations on
// the tensor panic with this error, because each of them checks the file's size first. A truncation
// during an operation, or before an access to a slice of [Data], causes a memory fault. [Catch]
// converts both to errors.
func FromFile(path string, dt DType, shape ...int) (*Tensor, error) {
	return fromFile(path, false, dt, shape)
}

// FromFileShared is like [FromFile] with shared=True of torch.from_file: writes go to the file and
// are visible to every process that maps it. FromFileShared creates a missing file and extends a
// short one with zeros. If the tensor is sent to another process, that process opens the file by
// its path, checks that it is the same file, and maps it too.
func FromFileShared(path string, dt DType, shape ...int) (*Tensor, error) {
	return fromFile(path, true, dt, shape)
}

// fromFile implements FromFile, and FromFileShared if shared is true.
func fromFile(path string, shared bool, dt DType, shape []int) (*Tensor, error) {
	t, err := newUnbacked(dt, shape, rowMajor(shape), 0, 1<<50)
	if err != nil {
		return nil, fmt.Errorf("tensor from file: %w", err)
	}
	f, err := openFile(path, shared, shared, t.Nbytes())
	if err != nil {
		return nil, fmt.Errorf("tensor from file: %w", err)
	}
	t.setStorage(files.storageOf(f))
	return t, nil
}

// openFile opens a file and maps its first size bytes. If shared is true, writes to the memory go
// to the file. If extend is true, openFile creates the file or extends it as needed; otherwise
// the error wraps ErrFile if the file is too short. The caller must pass the result to storageOf
// or call releaseMemory.
func openFile(path string, shared, extend bool, size int) (*file, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	flags := os.O_RDONLY
	if shared {
		flags = os.O_RDWR
	}
	if extend {
		flags |= os.O_CREATE
	}
	o, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	f := &file{File: o, shared: shared}
	if err := f.mapIn(extend, size); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return f, nil
}

func (f *file) mapIn(extend bool, size int) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return f.sizeMismatch(info.Size(), int64(size), "not a regular file")
	case info.Size() < int64(size) && !extend:
		return f.sizeMismatch(info.Size(), int64(size), "file is too short")
	case info.Size() < int64(size):
		if err := extendFile(f.File, int64(size)); err != nil {
			return err
		}
	}
	if f.id, _, err = sys.Identify(f.File); err != nil || size == 0 {
		return err
	}
	if f.shared {
		f.bytes, err = sys.Map(f.File, size)
	} else {
		f.bytes, err = sys.MapPrivate(f.File, size)
	}
	return err
}

// releaseMemory unmaps and closes the file. It is idempotent.
func (f *file) releaseMemory() error {
	if f.ended.Swap(true) {
		return nil
	}
	files.removeFile(f)
	err := f.Close()
	if len(f.bytes) > 0 {
		err = errors.Join(err, sys.Unmap(f.bytes))
	}
	return err
}

// extendFile extends a file to size bytes and allocates its disk blocks if the file system
// supports this, because a full disk under a mapping is a memory fault.
func extendFile(f *os.File, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	if err := sys.Commit(f, 0, size); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// check panics with an error that wraps ErrFile if the file has been truncated.
func (f *file) check() {
	if err := f.truncatedError(); err != nil {
		panic(err)
	}
}

func (f *file) truncatedError() error {
	info, err := f.Stat()
	if err == nil && info.Size() < int64(len(f.bytes)) {
		return f.sizeMismatch(info.Size(), int64(len(f.bytes)), "file was truncated")
	}
	return nil // if Stat failed, the file is closed; the caller detects that
}

// files contains the mapped files. It serves to share one storage between mappings of a file, and
// to find the file of a fault's address.
var files = fileTable{open: map[*file]weak.Pointer[Storage]{}}

type fileTable struct {
	mu   sync.Mutex
	open map[*file]weak.Pointer[Storage]
}

// storageOf returns the storage of f with one more reference, which the caller must release. If f
// is shared and another storage maps the same bytes of the file, storageOf closes f and returns
// that storage.
func (t *fileTable) storageOf(f *file) *Storage {
	s := t.addFile(f)
	if s.mem.Load().lease != f {
		f.releaseMemory()
	}
	return s
}

func (t *fileTable) addFile(f *file) *Storage {
	t.mu.Lock()
	defer t.mu.Unlock()
	for old, w := range t.open {
		if !f.shared || !old.shared || old.id != f.id || len(old.bytes) != len(f.bytes) {
			continue
		}
		if s := w.Value(); s != nil && s.retainOpen() {
			return s
		}
	}
	s := new(Storage)
	s.uses.Store(1)
	s.setForeign(&memory{bytes: f.bytes, lease: f})
	t.open[f] = weak.Make(s)
	return s
}

// registerFile registers f as memory of s, so that faultError can find it.
func (t *fileTable) registerFile(f *file, s *Storage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[f] = weak.Make(s)
}

func (t *fileTable) removeFile(f *file) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, f)
}

// faultError returns the error, which wraps ErrFile, for a failed access at an address, or nil if
// the address is not in a truncated file.
func (t *fileTable) faultError(at uintptr) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for f := range t.open {
		from := uintptr(unsafe.Pointer(unsafe.SliceData(f.bytes)))
		if at >= from && at-from < uintptr(len(f.bytes)) {
			return f.truncatedError()
		}
	}
	return nil
}

// marshal encodes the path, the identity and the size of the mapping, for another process to map
// the file.
func (f *file) marshal(e *codec.Encoder) {
	e.String(f.Name())
	e.Uint(f.id.Device)
	e.Uint(f.id.Inode)
	e.Uint(uint64(len(f.bytes)))
}

// readFile maps the file described by marshal, and returns its storage with one more reference,
// which the caller must release. The error wraps ErrFile if the file is too short or is not the
// one that the sender mapped.
func readFile(d *codec.Decoder) (*Storage, error) {
	path, err := d.String()
	if err != nil {
		return nil, err
	}
	var id sys.FileID
	if id.Device, err = d.Uint(); err != nil {
		return nil, err
	}
	if id.Inode, err = d.Uint(); err != nil {
		return nil, err
	}
	size, err := decodeSize(d)
	if err != nil {
		return nil, err
	}
	f, err := openFile(path, true, false, size)
	if err != nil {
		return nil, err
	}
	if f.id != id {
		return nil, errors.Join(sizeMismatchOf(path, int64(size), int64(size),
			"not the file that the sender mapped"), f.releaseMemory())
	}
	return files.storageOf(f), nil
}
