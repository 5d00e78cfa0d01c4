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
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// Options says how to load. The zero value copies all tensors to the heap.
type Options struct {
	// MapLocation returns the device for a storage that was saved on a device such as "cuda:0", as
	// torch.load's map_location does; [To] returns such a function. If MapLocation is nil or
	// returns "", a storage goes to the device where it was. A device is "cpu" or one that
	// tensor.ParseDevice finds. Mapped elements are copied to a device other than "cpu".
	MapLocation func(location string) string
	// Mmap maps the file instead of reading it. The elements of tensors are pages of the file,
	// which the kernel reads when they are touched and copies when they are written to. Checksums
	// are not compared. Load still reads a legacy file, a file of the other byte order, and a
	// storage that is not aligned.
	Mmap bool
	// MaxBytes is how many bytes of elements the file may have, mapped or read. 0 stands for the
	// size of the file and, for elements that are read, at most the memory that the machine and the
	// cgroup have left for this process. 64 MiB are always allowed.
	MaxBytes int64
	// Skip is called for each entry of a dict whose value cannot be read, such as a quantized
	// tensor of a state_dict. keys are those that lead to it, such as "model.encoder.weight", and
	// err wraps ErrUnsupported. If Skip returns true, the entry is left out and the rest is read.
	// If it returns false or is nil, the file is not read, and the error has the keys.
	Skip func(keys string, err error) bool
}

// tally bounds what the storages of a file of so many bytes take together.
func (o Options) tally(size int64) *safefile.Limit {
	return &safefile.Limit{Most: o.MaxBytes, Fills: size,
		Remedy: "raise Options.MaxBytes if that is meant, or map it (Options.Mmap)"}
}

// To returns a function for Options.MapLocation that loads every storage to one device. To("cpu")
// is torch.load's map_location="cpu".
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

// Load reads a file of torch.save: a zip file, or one of PyTorch before 1.6. The value is of a type
// that Conn.Recv of package torch lists: nil, bool, int64, float64, string, []any, *python.Dict,
// *tensor.Tensor, *autograd.Param and so on. An object of another class, such as a Module, is a
// *python.Record. Tensors that were views of one storage are views of one storage again. The caller
// closes the tensors.
//
// The error is an [*encoding.FileError] that wraps ErrFormat, ErrUnsupported, ErrLocation, ErrLimit
// or the error of reading.
func Load(path string, o Options) (any, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, &encoding.FileError{Path: path, Err: err}
	}
	v, err := loadFile(f, o)
	if err != nil {
		return nil, &encoding.FileError{Path: path, Err: err}
	}
	return v, nil
}

// Decode reads a file of size bytes from r, as Load does from a path. The caller closes r. Decode
// ignores Options.Mmap and copies all tensors to the heap. The error is that of [Load].
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
	l.Lifter = value.Lifter{Object: l.object, Outside: l.bare, Unread: l.unread}
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

// unread decides about an entry of a dict that has no value in Go.
func (l *loader) unread(keys string, err error) error {
	if errors.Is(err, ErrUnsupported) && l.opts.Skip != nil && l.opts.Skip(keys, err) {
		return nil
	}
	return fmt.Errorf("%s: %w", keys, err)
}

// names lets every name be in a file: nothing runs. Only plain values have constructors.
func names(g value.Global) (pickle.Constructor, bool) { return value.Names()[g], true }

// limits are for what is in a file beside its storages.
var limits = pickle.Limits{Bytes: 256 << 20}
