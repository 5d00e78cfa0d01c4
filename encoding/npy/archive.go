package npy

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// extension is the suffix of the array names in an archive.
const extension = ".npy"

// encodeAll writes tensors as an .npz file, sorted by name. It returns the same errors as
// [Encode].
func encodeAll(w io.Writer, tensors map[string]*tensor.Tensor) error {
	z := zip.NewWriter(w)
	for _, name := range sortedKeys(tensors) {
		to, err := z.CreateHeader(&zip.FileHeader{Name: name + extension, Method: zip.Store})
		if err == nil {
			err = encode(to, tensors[name])
		}
		if err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
	}
	return z.Close()
}

// Info describes a member of an archive, as [Archive.List] returns it. DType and Shape are valid
// only if Err is nil.
type Info struct {
	Name  string
	DType tensor.DType
	Shape []int
	// Err is the error that [Archive.Tensor] would return. It wraps [ErrDType] if the member is an
	// array of objects, records or text, or is not an array.
	Err error
}

// Archive is an open .npz file with a validated directory. [OpenArchive] and [NewArchive] return
// one. Its methods may be called from several goroutines, but [Archive.Close] must be called
// after all other calls have returned.
type Archive struct {
	// MaxBytes limits the number of bytes of elements that one call of [Archive.Tensor] or
	// [Archive.Tensors] may read. The limit is needed because a compressed archive of 12 MB can
	// contain 12 GiB of zeros. If it is 0, the limit is 1 GiB, or 100 times the compressed size if
	// that is more, and at most the memory available to the process on the machine and in its
	// cgroup. 64 MiB are always allowed.
	MaxBytes int64

	path    string
	file    io.Closer                    // nil if the caller owns the file
	entries map[string]safefile.ZipEntry // by array name
}

// OpenArchive opens an .npz file, which may be compressed. The caller must close the archive.
// The error is an [*encoding.FileError] that wraps [ErrFormat] or the error of opening or
// reading.
func OpenArchive(path string) (*Archive, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, wrapError(path, "", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, wrapError(path, "", errors.Join(err, f.Close()))
	}
	a := &Archive{path: path, file: f, entries: map[string]safefile.ZipEntry{}}
	if err := a.readDirectory(f, info.Size()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

// NewArchive reads an .npz file of size bytes from r. [Archive.Close] does not close r. The
// error is an [*encoding.FileError] that wraps [ErrFormat].
func NewArchive(r io.ReaderAt, size int64) (*Archive, error) {
	a := &Archive{entries: map[string]safefile.ZipEntry{}}
	if err := a.readDirectory(r, size); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Archive) readDirectory(r io.ReaderAt, size int64) error {
	entries, err := safefile.ReadZip(r, size)
	if err != nil {
		return wrapError(a.path, "", fmt.Errorf("%w: %w", ErrFormat, err))
	}
	for file, e := range entries {
		name := strings.TrimSuffix(file, extension)
		if _, twice := a.entries[name]; twice {
			return wrapError(a.path, name, malformed("duplicate name"))
		}
		a.entries[name] = e
	}
	return nil
}

// List describes the members of the archive, sorted by name. It reads only their headers. An
// invalid member has its error in [Info].Err.
func (a *Archive) List() []Info {
	var list []Info
	for _, name := range sortedKeys(a.entries) {
		h, r, err := openMember(a.entries[name])
		if err == nil {
			err = r.Close()
		}
		list = append(list, Info{name, h.dtype, h.shape, err})
	}
	return list
}

// Tensor reads an array to the heap. The caller must close the tensor. The error is an
// [*encoding.FileError]. It wraps [ErrName] if there is no such array, and [ErrLimit] if the array
// is larger than MaxBytes.
func (a *Archive) Tensor(name string) (*tensor.Tensor, error) {
	e, ok := a.entries[name]
	if !ok {
		return nil, wrapError(a.path, name, fmt.Errorf("%w; List lists the names", ErrName))
	}
	t, err := readMember(e, func(bytes int) error { return a.checkLimit(int64(bytes), int64(e.CompressedSize64)) })
	if err != nil {
		return nil, wrapError(a.path, name, err)
	}
	return t, nil
}

// checkLimit returns an error that wraps [ErrLimit] if MaxBytes, or its default, does not permit
// packed compressed bytes to expand to the given number of bytes.
func (a *Archive) checkLimit(bytes, packed int64) error {
	return safefile.CheckSize(bytes, safefile.InflatedSize(packed), a.MaxBytes,
		"raise Archive.MaxBytes if this is intended")
}

// Close closes the file that [OpenArchive] opened. Tensors that were read stay valid.
func (a *Archive) Close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// LoadAll reads all arrays of an .npz file, which may be compressed, to the heap, by name. The
// caller must close them. If some members are not arrays of numbers, LoadAll returns the others
// together with an error, like [Archive.Tensors].
func LoadAll(path string) (map[string]*tensor.Tensor, error) {
	a, err := OpenArchive(path)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	return a.Tensors()
}

// Tensors reads all arrays to the heap. The caller must close them. The error wraps an
// [*encoding.FileError] for each array that cannot be read, and [ErrLimit] if the arrays together
// are larger than MaxBytes. If all failures wrap [ErrDType], because the members are arrays of
// objects, records or text, or are not arrays, Tensors returns the other arrays together with the
// error.
func (a *Archive) Tensors() (map[string]*tensor.Tensor, error) {
	if err := a.checkTotalLimit(); err != nil {
		return nil, wrapError(a.path, "", err)
	}
	all := make(map[string]*tensor.Tensor, len(a.entries))
	var left []error
	for _, name := range sortedKeys(a.entries) {
		t, err := a.Tensor(name)
		switch {
		case err == nil:
			all[name] = t
		case errors.Is(err, ErrDType):
			left = append(left, err)
		default:
			return nil, err
		}
	}
	return all, errors.Join(left...)
}

// checkTotalLimit returns an error that wraps [ErrLimit] if MaxBytes does not permit reading all
// members.
func (a *Archive) checkTotalLimit() error {
	var bytes, packed int64
	for _, e := range a.entries {
		bytes += int64(min(e.UncompressedSize64, math.MaxInt64/uint64(len(a.entries))))
		packed += int64(e.CompressedSize64)
	}
	return a.checkLimit(bytes, packed)
}

// openMember opens a member and reads its header. If there is no error, the caller must close
// the reader, which is at the first element. The error wraps [ErrDType] or [ErrFormat].
func openMember(e safefile.ZipEntry) (h header, r io.ReadCloser, err error) {
	if !strings.HasSuffix(e.Name, extension) {
		return h, nil, fmt.Errorf("%w: not a %s", ErrDType, extension)
	}
	if r, err = e.Open(); err != nil {
		return h, nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if h, err = readHeader(r); err == nil {
		return h, r, nil
	}
	// The error of Close repeats the error of the reader.
	r.Close()
	if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrDType) { // a decompression error
		err = fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return h, nil, err
}

// readMember reads an array to the heap. The caller must close the tensor. The size of the array
// must match the size in the archive directory; otherwise the error wraps [ErrFormat]. allow is
// called with the number of bytes of the elements before they are read, and its error refuses
// them.
func readMember(e safefile.ZipEntry, allow func(bytes int) error) (*tensor.Tensor, error) {
	h, r, err := openMember(e)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if uint64(h.length)+uint64(h.size) != e.UncompressedSize64 {
		return nil, malformed("%v of %v needs %d bytes, got %d", h.shape, h.dtype, h.size, e.UncompressedSize64)
	}
	if err := allow(h.size); err != nil {
		return nil, err
	}
	t, err := foreignTensors.ReadFrom(r, h.size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	defer t.Close()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // verifies the checksum
		return nil, malformed("after the elements: %v", err)
	}
	h.normalizeElements(tensor.Bytes(t))
	return h.viewStorage(t.Storage())
}
