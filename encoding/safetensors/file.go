package safetensors

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/regular"
	"github.com/shoal-mp/shoal/internal/room"
	"github.com/shoal-mp/shoal/tensor"
)

// File is an open file whose header was checked. Its methods may be called concurrently, Close
// after all others.
type File struct {
	// MaxBytes is how many bytes of elements Tensor, and Tensors together, may read. 0 stands for
	// what this process may take without somebody being killed; up to 64 MiB are always given. What
	// is mapped has no limit but the file.
	MaxBytes int64

	r      io.ReaderAt
	f      *os.File // r, where it is a file that Open has opened, and nil otherwise
	path   string
	header header
	body   int64 // where the elements begin

	mu     sync.Mutex
	mapped *tensor.FileMap // which has the file then; nil until Map is called
}

// Open opens a file and checks its header. The caller closes the File. The error is an
// [*encoding.FileError] where the file is malformed.
func Open(path string) (*File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open tensors: %w", err)
	}
	file := &File{r: f, f: f, path: path}
	info, err := f.Stat()
	if err == nil {
		err = file.readHeader(info.Size())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return file, nil
}

// NewFile is Open for size bytes that r has. The caller keeps r: Close does not close it, and Map
// reads.
func NewFile(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r}
	if err := f.readHeader(size); err != nil {
		return nil, err
	}
	return f, nil
}

// readHeader reads and checks the header of a file of so many bytes.
func (f *File) readHeader(size int64) error {
	h, n, name, err := readHeader(io.NewSectionReader(f.r, 0, size), size)
	if err != nil {
		return about(f.path, name, err)
	}
	f.header, f.body = h, n
	return nil
}

// Names returns the names of the tensors in the order of the file.
func (f *File) Names() []string { return f.header.names() }

// Info returns dtype and shape of a tensor; ok tells whether the file has it.
func (f *File) Info(name string) (info Info, ok bool) {
	info, ok = f.header.infos[name]
	info.Shape = slices.Clone(info.Shape)
	return info, ok
}

// Metadata returns a copy of what was saved beside the tensors.
func (f *File) Metadata() map[string]string { return maps.Clone(f.header.meta) }

// Tensor reads a tensor into memory of its own. The error wraps [ErrName] if the file has none of
// that name, or ErrLimit: see MaxBytes.
func (f *File) Tensor(name string) (*tensor.Tensor, error) {
	info, ok := f.header.infos[name]
	if !ok {
		return nil, about(f.path, name, fmt.Errorf("%w; Names lists what there is", ErrName))
	}
	if err := f.allow(name); err != nil {
		return nil, about(f.path, name, err)
	}
	return f.fetch(name, info)
}

// fetch reads what may be read.
func (f *File) fetch(name string, info Info) (*tensor.Tensor, error) {
	t := tensor.Empty(info.DType, info.Shape...)
	if err := f.readAt(t, f.body+int64(info.begin)); err != nil {
		return nil, about(f.path, name, err)
	}
	info.DType.CleanBools(tensor.Bytes(t))
	return t, nil
}

// readAt fills t with what is at an offset.
func (f *File) readAt(t *tensor.Tensor, at int64) error {
	if f.f != nil {
		return tensor.ReadFileAt(t, f.f, at)
	}
	b := tensor.Bytes(t)
	return readFull(io.NewSectionReader(f.r, at, int64(len(b))), b, ErrOffsets)
}

// TensorOn is Tensor on a device, or on the host if that is nil. The caller closes it.
func (f *File) TensorOn(name string, dev tensor.Device) (*tensor.Tensor, error) {
	near, err := f.Tensor(name)
	if err != nil || dev == nil {
		return near, err
	}
	there, err := near.ToDevice(dev)
	if err != nil {
		return nil, about(f.path, name, err)
	}
	return there, nil
}

// Map returns a tensor whose elements are pages of the file, read when they are touched and copied
// when they are written to, as tensor.FromFile has them; one that the file has not aligned is read.
// The caller closes it, before the File or after. The error wraps [ErrName], or is a
// *tensor.FileError where the file was cut short.
func (f *File) Map(name string) (t *tensor.Tensor, err error) {
	info, ok := f.header.infos[name]
	at := f.body + int64(info.begin)
	if !ok || f.f == nil || at%int64(info.DType.Size()) != 0 {
		return f.Tensor(name)
	}
	m, err := f.mapping()
	if err != nil {
		return nil, about(f.path, name, err)
	}
	guarded := tensor.Guard(func() { t, err = view(m, at, info) })
	if err = errors.Join(err, guarded); err != nil {
		return nil, about(f.path, name, err)
	}
	return t, nil
}

// view makes a tensor of what the header says is there.
func view(m *tensor.FileMap, at int64, info Info) (*tensor.Tensor, error) {
	hold, err := m.Storage(at, int64(info.end-info.begin))
	if err != nil {
		return nil, err
	}
	defer hold.Close()
	info.DType.CleanBools(tensor.Bytes(hold))
	return tensor.Contiguous(hold.Storage(), info.DType, info.Shape...)
}

// Tensors reads all tensors. The error wraps ErrLimit where they are too many bytes together: see
// MaxBytes.
func (f *File) Tensors() (map[string]*tensor.Tensor, error) {
	if err := f.allow(f.Names()...); err != nil {
		return nil, about(f.path, "", err)
	}
	return each(f.Names(), f.Tensor)
}

func (f *File) bytes(name string) int64 {
	info := f.header.infos[name]
	return int64(info.end - info.begin)
}

// allow says whether tensors may be read, whose sizes the file was found to have.
func (f *File) allow(names ...string) error {
	bytes := int64(0)
	for _, name := range names {
		bytes += f.bytes(name)
	}
	return room.Check(bytes, bytes, f.MaxBytes, "raise File.MaxBytes if that is meant, or Map it")
}

// each calls get for all names.
func each(names []string, get func(string) (*tensor.Tensor, error)) (map[string]*tensor.Tensor, error) {
	all := make(map[string]*tensor.Tensor, len(names))
	for _, name := range names {
		t, err := get(name)
		if err != nil {
			return nil, err
		}
		all[name] = t
	}
	return all, nil
}

// Close closes the file that Open has opened. Tensors that were read or mapped stay.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.mapped != nil:
		return f.mapped.Close()
	case f.f != nil:
		return f.f.Close()
	}
	return nil
}

// mapping maps the file, once.
func (f *File) mapping() (m *tensor.FileMap, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mapped == nil {
		f.mapped, err = tensor.MapFile(f.f)
	}
	return f.mapped, err
}
