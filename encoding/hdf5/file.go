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

// A File is an open file whose groups were read. Several goroutines may call its methods; Close is
// called after all others.
type File struct {
	// MaxBytes is how many bytes of elements one call that reads may ask for. 0 stands for as many
	// as the file can fill, and at most the memory that the machine and the cgroup have left for
	// this process. What is compressed fills 1 GiB, or 100 bytes for each compressed one where that
	// is more. 64 MiB are always allowed, also for a data set of fill values alone.
	MaxBytes int64
	// UserBlock is how many bytes of another program stand before the HDF5 file itself: 512 in a
	// file of MATLAB 7.3.
	UserBlock int64

	path string
	file io.Closer // nil where it is not the File's
	tree
}

// Open opens a file and finds its data sets. The caller closes the File. The error is an
// [*encoding.FileError] that wraps ErrFormat or ErrUnsupported, or the error of reading.
func Open(path string) (*File, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open data sets: %w", err)
	}
	file, err := open(f)
	if err != nil {
		return nil, about(path, "", errors.Join(err, f.Close()))
	}
	return file, nil
}

// NewFile opens a file of size bytes that r reads. Close does not close r. The error is an
// [*encoding.FileError] as that of [Open].
func NewFile(r io.ReaderAt, size int64) (*File, error) {
	f, err := walk(r, size)
	if err != nil {
		return nil, about("", "", err)
	}
	return f, nil
}

// open walks a file, which is the File's from then on.
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

// walk finds the groups and data sets.
func walk(r io.ReaderAt, size int64) (*File, error) {
	at, err := source{r, size}.begin()
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

// Names returns the names of the data sets, sorted, with their groups: "train/x".
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.datasets)) }

// Groups returns the names of the groups, sorted, without the root group.
func (f *File) Groups() []string { return slices.Sorted(maps.Keys(f.groups))[1:] }

// Dataset returns the data set of a name. The error wraps ErrName if there is none, ErrText if it
// is text, ErrUnsupported if it uses a feature that this package does not read, or ErrFormat.
func (f *File) Dataset(name string) (*Dataset, error) {
	d, err := f.find(name)
	if err == nil && d.kind.text.is {
		err = fmt.Errorf("%w: Strings reads it", ErrText)
	}
	if err != nil {
		return nil, f.about(name, err)
	}
	return d, nil
}

// find finds a data set of numbers or of text.
func (f *File) find(name string) (*Dataset, error) {
	address, ok := f.datasets[name]
	if !ok {
		return nil, fmt.Errorf("%w; Names lists what there is", ErrName)
	}
	d := &Dataset{tree: &f.tree, most: f.MaxBytes}
	all, err := f.messages(address)
	if err == nil {
		err = d.describe(all)
	}
	return d, err
}

// about says of what an error is.
func (f *File) about(name string, err error) error { return about(f.path, name, err) }

// Close closes the file that Open has opened. Its data sets can be read no more.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// Load reads all data sets of numbers of a file to the heap. The caller closes the tensors. The
// error is an [*encoding.FileError] that wraps ErrFormat, ErrUnsupported or ErrLimit, or is the
// error of reading.
func Load(path string) (map[string]*tensor.Tensor, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Tensors()
}

// Tensors reads all data sets of numbers to the heap. The caller closes the tensors. The error
// wraps ErrLimit if all together are larger than MaxBytes, or is an error of [Dataset.Read].
func (f *File) Tensors() (map[string]*tensor.Tensor, error) {
	sets, err := f.numbers()
	if err != nil {
		return nil, err
	}
	all := map[string]*tensor.Tensor{}
	for name, d := range sets {
		if all[name], err = d.Read(); err != nil {
			return nil, f.about(name, err)
		}
	}
	return all, nil
}

// numbers returns the data sets of numbers, which may be read together.
func (f *File) numbers() (map[string]*Dataset, error) {
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
			return nil, f.about(name, err)
		}
		sets[name] = d
		bytes = min(bytes+int64(size), math.MaxInt64/2)
		fills += d.fills()
	}
	if err := safefile.CheckSize(bytes, fills, f.MaxBytes, "open the file and read its data sets one by one"); err != nil {
		return nil, f.about("", err)
	}
	return sets, nil
}
