package hdf5

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// File is an HDF5 file opened for reading. Its methods may be called from several goroutines, but
// [File.Close] must be called after all other calls have returned.
type File struct {
	// MaxBytes limits the number of bytes that one read call may allocate for elements. If it is 0,
	// the limit is the size of the data in the file, and at most the memory available to the
	// process on the machine and in its cgroup. Compressed data is assumed to expand to at most 1
	// GiB, or by a factor of 100 if that is more. 64 MiB are always allowed, also for a data set
	// that contains only fill values. MaxBytes must be set before [File.Dataset] is called.
	MaxBytes int64
	// UserBlock is the size in bytes of the user block, which precedes the HDF5 data and belongs to
	// another program. It is 512 in files written by MATLAB 7.3.
	UserBlock int64

	path string
	file io.Closer // nil if the caller owns the file
	tree
}

// Open opens a file and lists its groups and data sets. The caller must close the [File]. The error
// is an [*encoding.FileError] that wraps [ErrFormat], [ErrUnsupported] or the error of reading. If
// the file cannot be opened, the error wraps the error of [os.Open].
func Open(path string) (*File, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open data sets: %w", err)
	}
	file, err := open(f)
	if err != nil {
		return nil, wrapError(path, "", errors.Join(err, f.Close()))
	}
	return file, nil
}

// NewFile reads an HDF5 file of size bytes from r. [File.Close] does not close r. It returns the
// same errors as [Open].
func NewFile(r io.ReaderAt, size int64) (*File, error) {
	f, err := walk(r, size)
	if err != nil {
		return nil, wrapError("", "", err)
	}
	return f, nil
}

// open reads the groups of f. On success, the returned [File] owns f; after an error, the caller
// must close it.
func open(f *os.File) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := walk(f, info.Size())
	if err == nil {
		file.path, file.file = f.Name(), f
	}
	return file, err
}

// walk lists the groups and data sets of a file of size bytes. The returned [File] does not own
// r. The error wraps [ErrFormat] or [ErrUnsupported], or is the error of reading.
func walk(r io.ReaderAt, size int64) (*File, error) {
	at, err := source{r, size}.signatureOffset()
	if err != nil {
		return nil, err
	}
	whole := source{io.NewSectionReader(r, at, size-at), size - at}
	file := &File{UserBlock: at, tree: tree{source: whole, inside: map[uint64]bool{}, datasets: map[string]uint64{},
		groups: map[string]uint64{}}}
	root, err := file.readSuperblock()
	if err == nil {
		err = file.walk("", root, 0)
	}
	return file, err
}

// Names returns the paths of all data sets in sorted order, for example "train/x".
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.datasets)) }

// Groups returns the paths of all groups in sorted order, without the root group.
func (f *File) Groups() []string { return slices.Sorted(maps.Keys(f.groups))[1:] }

// Dataset returns the data set with the given path. The error wraps [ErrName] if it does not exist,
// [ErrText] if it contains strings, [ErrUnsupported] if it uses an unsupported feature, or
// [ErrFormat].
func (f *File) Dataset(name string) (*Dataset, error) {
	d, err := f.find(name)
	if err == nil && d.kind.text.is {
		err = fmt.Errorf("%w: read it with Strings", ErrText)
	}
	if err != nil {
		return nil, f.wrapError(name, err)
	}
	return d, nil
}

// find returns a data set of any type, including strings. The error wraps [ErrName], [ErrFormat]
// or [ErrUnsupported], without the name and the path.
func (f *File) find(name string) (*Dataset, error) {
	address, ok := f.datasets[name]
	if !ok {
		return nil, fmt.Errorf("%w; Names lists the names", ErrName)
	}
	d := &Dataset{tree: &f.tree, most: f.MaxBytes}
	all, err := f.readMessages(address)
	if err == nil {
		err = d.decodeMessages(all)
	}
	return d, err
}

// wrapError adds the path of the file and a name to an error, which must not be nil.
func (f *File) wrapError(name string, err error) error { return wrapError(f.path, name, err) }

// Close closes the file if it was opened by [Open]. Its data sets must not be read afterwards.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// Load reads all numeric data sets of a file into tensors on the heap. The caller must close the
// tensors. The error is an [*encoding.FileError] that wraps [ErrFormat], [ErrUnsupported],
// [ErrLimit] or the error of reading.
func Load(path string) (map[string]*tensor.Tensor, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Tensors()
}

// Tensors reads all numeric data sets into tensors on the heap. The caller must close the tensors.
// The error wraps [ErrLimit] if the data sets together exceed MaxBytes; otherwise it is an error of
// [Dataset.Read].
func (f *File) Tensors() (map[string]*tensor.Tensor, error) {
	sets, err := f.numericDatasets()
	if err != nil {
		return nil, err
	}
	all := map[string]*tensor.Tensor{}
	for name, d := range sets {
		if all[name], err = d.Read(); err != nil {
			return nil, f.wrapError(name, err)
		}
	}
	return all, nil
}

// numericDatasets returns all numeric data sets by name. The error wraps [ErrLimit] if their
// total size exceeds the limit; otherwise it is an error of [File.Dataset].
func (f *File) numericDatasets() (map[string]*Dataset, error) {
	sets := map[string]*Dataset{}
	var bytes, fills int64
	for _, name := range f.Names() {
		d, err := f.Dataset(name)
		if errors.Is(err, ErrText) {
			continue
		}
		if err != nil {
			return nil, err
		}
		size, err := d.kind.sizeOf(d.shape...)
		if err != nil {
			return nil, f.wrapError(name, err)
		}
		sets[name] = d
		bytes = min(bytes+int64(size), math.MaxInt64/2)
		fills += d.maxExpandedSize()
	}
	if err := safefile.CheckSize(bytes, fills, f.MaxBytes,
		"open the file and read its data sets one at a time"); err != nil {
		return nil, f.wrapError("", err)
	}
	return sets, nil
}
