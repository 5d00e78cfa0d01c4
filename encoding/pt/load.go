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

// Options specifies how a file is loaded. The zero value copies all tensors to the heap.
type Options struct {
	// MapLocation maps the device that a storage was saved on, such as "cuda:0", to the device to
	// load it to, like map_location of torch.load. [To] returns such a function. If MapLocation is
	// nil or returns "", the storage is loaded to its original device. A device must be "cpu" or
	// valid for [tensor.ParseDevice]. Mapped elements are copied if the device is not "cpu".
	MapLocation func(location string) string
	// Mmap maps the file instead of reading it. The elements of the tensors are then pages of the
	// file, which the kernel loads on access and copies on write. Checksums are not verified.
	// Legacy files, big-endian files and unaligned storages are read nevertheless.
	Mmap bool
	// MaxBytes limits the number of bytes of elements that are mapped or read. If it is 0, the
	// limit is the size of the file, and for elements that are read, at most the memory available
	// to the process on the machine and in its cgroup. 64 MiB are always allowed.
	MaxBytes int64
	// Skip is called for each entry of a dict with a value that cannot be read, such as a quantized
	// tensor of a state_dict. keys are those that lead to it, such as "model.encoder.weight", and
	// err wraps ErrUnsupported. If Skip returns true, the entry is left out and the rest is read.
	// If it returns false or is nil, the file is not read, and the error has the keys.
	Skip func(keys string, err error) bool
}

// storageLimit returns the limit for all storages of a file of size bytes together. Each storage
// is added to it as it is opened.
func (o Options) storageLimit(size int64) *safefile.Limit {
	return &safefile.Limit{Most: o.MaxBytes, Fills: size,
		Remedy: "raise Options.MaxBytes if this is intended, or map the file (Options.Mmap)"}
}

// To returns a function for Options.MapLocation that loads every storage to the given device.
// To("cpu") is equivalent to map_location="cpu" of torch.load.
func To(device string) func(string) string { return func(string) string { return device } }

// container is a file format that finds storages by key: an archive, a legacy file or a pickle.
type container interface {
	// openStorage returns a tensor that covers the storage, and that the caller must close. size is
	// the size in bytes and dt the dtype that the file's tensors expect.
	openStorage(key string, dt tensor.DType, size int64) (*tensor.Tensor, error)
}

// loader builds the value of a file. [liftTree] makes it. One goroutine may use it.
type loader struct {
	value.Lifter
	opts  Options
	from  container
	holds map[string]held // storages loaded so far, by key
	made  []*tensor.Tensor
}

// held is a loaded storage, covered by a tensor that the loader closes.
type held struct {
	*tensor.Tensor
	dtype tensor.DType // dtype for which it was read
}

// Load reads a file written by torch.save: a zip file, or the format of PyTorch before 1.6. The
// value has one of the types listed at Conn.Recv of package torch: nil, bool, int64, float64,
// string, []any, *[python.Dict], *[tensor.Tensor], *[autograd.Param] and so on. An object of
// another class, such as a Module, is a *[python.Record]. Tensors that shared a storage when they
// were saved share one again. The caller must close the tensors.
//
// The error is an [*encoding.FileError] that wraps [ErrFormat], [ErrUnsupported], [ErrLocation],
// [ErrLimit] or the error of reading.
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

// Decode is like [Load] but reads a file of size bytes from r. It does not close r. Options.Mmap
// is ignored: all tensors are copied to the heap. It returns the same errors as [Load].
func Decode(r io.ReaderAt, size int64, o Options) (any, error) {
	o.Mmap = false
	v, err := load(contents{r, size, nil}, o)
	if err != nil {
		return nil, &encoding.FileError{Err: err}
	}
	return v, nil
}

// contents is an open file, or another source of its bytes. Its size is in bytes.
type contents struct {
	io.ReaderAt
	size int64
	file *os.File // nil if not an os.File
}

// fill reads the bytes at the offset at into t, as many as t has. It returns an error if there are
// fewer.
func (c contents) fill(t *tensor.Tensor, at int64) error {
	if c.file != nil {
		return foreignTensors.ReadFileAt(t, c.file, at)
	}
	return c.readFull(tensor.Bytes(t), at)
}

// readFull reads exactly len(b) bytes at the offset at. The error is [io.ErrUnexpectedEOF] or
// [io.EOF] if there are fewer.
func (c contents) readFull(b []byte, at int64) error {
	_, err := io.ReadFull(io.NewSectionReader(c, at, int64(len(b))), b)
	return err
}

// Close closes the file, if there is one. The caller owns any other source.
func (c contents) Close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// loadFile loads f and closes it, also after an error. A mapped file that is truncated in the
// meantime is an error, not a fault. It returns the same errors as [Load], without the path.
func loadFile(f *os.File, o Options) (v any, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	guarded := tensor.Catch(func() { v, err = load(contents{f, info.Size(), f}, o) })
	return v, errors.Join(err, guarded)
}

// load loads a file and closes it, also after an error. It returns the same errors as [Load],
// without the path.
func load(from contents, o Options) (v any, err error) {
	zipped, err := from.isZip()
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

// isZip reports whether the file is a zip file. The error wraps [ErrFormat] if it has less than
// 4 bytes.
func (c contents) isZip() (bool, error) {
	var start [4]byte
	switch n, err := c.ReadAt(start[:], 0); {
	case n == len(start):
		return string(start[:]) == "PK\x03\x04", nil
	case err == nil || err == io.EOF:
		return false, malformed("file has less than 4 bytes")
	default:
		return false, err
	}
}

// liftTree converts a decoded pickle to Go values. It loads the storages from the container. The
// caller must close the tensors in the result. After an error, liftTree has closed all tensors that
// it created. The error wraps [ErrFormat] or [ErrUnsupported], or is an error of the container.
func liftTree(tree any, from container, o Options) (any, error) {
	l := &loader{opts: o, from: from, holds: map[string]held{}}
	l.Lifter = value.Lifter{Object: l.convertObject, Outside: l.convertBareStorage, Unread: l.handleUnread}
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
	if errors.Is(err, value.ErrProtocol) { // package value reports them as protocol errors
		err = fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return nil, err
}

// handleUnread decides about an entry of a dict that has no value in Go, for the reason err. It
// returns nil if [Options.Skip] accepts that the entry is left out, and otherwise an error with
// the keys.
func (l *loader) handleUnread(keys string, err error) error {
	if errors.Is(err, ErrUnsupported) && l.opts.Skip != nil && l.opts.Skip(keys, err) {
		return nil
	}
	return fmt.Errorf("%s: %w", keys, err)
}

// permitName permits every name in a file, because nothing is executed: the bool is always true.
// Only plain values have constructors; for all other names the constructor is nil, and they
// become records.
func permitName(g value.Global) (pickle.Constructor, bool) { return value.Names()[g], true }

// limits applies to the pickles in a file, not to the storages.
var limits = pickle.Limits{Bytes: 256 << 20}
