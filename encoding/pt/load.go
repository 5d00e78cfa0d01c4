package pt

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/regular"
	"github.com/shoal-mp/shoal/internal/room"
	"github.com/shoal-mp/shoal/tensor"
)

// Options says how to load. The zero value copies all tensors to the heap.
type Options struct {
	// MapLocation says where a storage goes that was saved from a device such as "cuda:0", as
	// torch.load's map_location does; [To] returns one. Where it is nil, or returns "", storages go
	// where they were. All must go to "cpu", or to a device that
	// tensor.ParseDevice finds; what was mapped is copied there.
	MapLocation func(location string) string
	// Mmap maps the file instead of reading it. Tensors are then pages of the file, read when they
	// are touched and copied when they are written to; checksums are not compared. A legacy file,
	// one of the other byte order, and a storage that is not aligned are read all the same.
	Mmap bool
	// MaxBytes is how many bytes of elements the file may ask for, mapped or read. 0 stands for
	// what it has, and for what is read no more than this process may take without somebody being
	// killed; up to 64 MiB are always given.
	MaxBytes int64
}

// tally bounds what the storages of a file of so many bytes take together.
func (o Options) tally(size int64) *room.Tally {
	return &room.Tally{Most: o.MaxBytes, Fills: size,
		Remedy: "raise Options.MaxBytes if that is meant, or map it (Options.Mmap)"}
}

// To returns a MapLocation by which every storage goes to one device: map_location="cpu".
func To(device string) func(string) string { return func(string) string { return device } }

// container is a kind of file in which storages are found by key.
type container interface {
	// storage returns a tensor on the storage, whose size in bytes and dtype its users say.
	storage(key string, dt tensor.DType, size int64) (*tensor.Tensor, error)
}

// A loader makes the values of one file.
type loader struct {
	value.Lifter
	opts  Options
	from  container
	holds map[string]held // of storages
	made  []*tensor.Tensor
}

// A held storage.
type held struct {
	*tensor.Tensor
	dtype tensor.DType // as which it was read
}

// Load reads a file of torch.save: a zip file, or one of PyTorch before 1.6. What comes is what
// Conn.Recv of package torch lists: nil, bool, int64, float64, string, []any, *python.Dict,
// *tensor.Tensor, *autograd.Param and so on, a *python.Record for each object of another class, a
// Module too. Views of one storage are views of one storage. The caller closes what was mapped.
//
// The error is an [*encoding.FileError] that wraps ErrFormat, ErrUnsupported, ErrLocation, ErrLimit
// or what reading says.
func Load(path string, o Options) (any, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, &encoding.FileError{Path: path, Err: err}
	}
	v, err := loadFile(f, o)
	if err != nil {
		return nil, &encoding.FileError{Path: path, Err: err}
	}
	return v, nil
}

// Decode reads size bytes that r has, as Load reads a file: an archive has its directory at its
// end. The caller keeps r. Options.Mmap maps nothing: all is read. The error is that of Load.
func Decode(r io.ReaderAt, size int64, o Options) (any, error) {
	o.Mmap = false
	v, err := load(contents{r, size, nil}, o)
	if err != nil {
		return nil, &encoding.FileError{Err: err}
	}
	return v, nil
}

// contents are the bytes of a file.
type contents struct {
	io.ReaderAt
	size int64
	file *os.File // nil where it is none
}

// fill fills t with what is at an offset.
func (c contents) fill(t *tensor.Tensor, at int64) error {
	if c.file != nil {
		return foreignTensors.ReadFileAt(t, c.file, at)
	}
	if _, err := c.ReadAt(tensor.Bytes(t), at); err != nil && err != io.EOF {
		return err
	}
	return nil
}

// Close closes the file.
func (c contents) Close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// loadFile reads f, which it closes.
func loadFile(f *os.File, o Options) (v any, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	guarded := tensor.Catch(func() { v, err = load(contents{f, info.Size(), f}, o) })
	return v, errors.Join(err, guarded)
}

// load reads a file, and closes it.
func load(from contents, o Options) (v any, err error) {
	zipped, err := from.zipped()
	if err != nil {
		return nil, errors.Join(err, from.Close())
	}
	if !zipped {
		defer from.Close()
		return loadLegacy(from, o)
	}
	z, err := openArchive(from, o)
	if err != nil {
		return nil, errors.Join(err, from.Close())
	}
	defer z.Close()
	return z.load(o)
}

// zipped reports whether it is a zip file.
func (c contents) zipped() (bool, error) {
	var start [4]byte
	switch n, err := c.ReadAt(start[:], 0); {
	case n == len(start):
		return string(start[:]) == "PK\x03\x04", nil
	case err == nil || err == io.EOF:
		return false, malformed("it has less than four bytes")
	default:
		return false, err
	}
}

// lift makes the value of a tree, whose storages are in from.
func lift(tree any, from container, o Options) (any, error) {
	l := &loader{opts: o, from: from, holds: map[string]held{}}
	l.Lifter = value.Lifter{Object: l.object, Outside: l.bare}
	v, err := l.Lift(tree)
	for h := range maps.Values(l.holds) {
		h.Close()
	}
	if err == nil {
		return v, nil
	}
	for _, t := range l.made {
		t.Close()
	}
	if errors.Is(err, value.ErrProtocol) { // of a message, as far as package value knows
		err = fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return nil, err
}

// names lets every name be in a file: nothing runs. Only plain values have constructors.
func names(g value.Global) (pickle.Constructor, bool) { return value.Names()[g], true }

// limits are for what is in a file beside its storages.
var limits = pickle.Limits{Bytes: 256 << 20}
