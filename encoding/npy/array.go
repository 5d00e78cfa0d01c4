package npy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// foreignTensors creates tensors backed by mapped files or read from streams.
var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// Save writes a tensor as an .npy file of version 1 in row-major order, like numpy.save, or a map
// of tensors as an .npz file sorted by name, like numpy.savez. Save writes to a temporary file and
// renames it to path at the end, so a reader never sees a partial file. The error wraps [ErrDType]
// if numpy does not support the dtype, such as bfloat16, or [tensor.ErrClosed] if a tensor is nil
// or closed; otherwise it is the error of writing.
func Save[T *tensor.Tensor | map[string]*tensor.Tensor](path string, of T) error {
	return safefile.Replace(path, func(f *os.File) error { return Encode(f, of) })
}

// Encode writes to w the bytes that [Save] writes to a file. The error wraps [ErrDType] or
// [tensor.ErrClosed], or is the error of w. A part may have been written then.
func Encode[T *tensor.Tensor | map[string]*tensor.Tensor](w io.Writer, of T) error {
	switch of := any(of).(type) {
	case map[string]*tensor.Tensor:
		return encodeAll(w, of)
	default:
		return encode(w, of.(*tensor.Tensor))
	}
}

// encode writes an .npy file. It returns the same errors as [Encode].
func encode(w io.Writer, t *tensor.Tensor) error {
	if err := foreignTensors.Check(t); err != nil {
		return err
	}
	head, err := appendHeader(nil, t)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	guarded := tensor.Catch(func() {
		whole := t.Contiguous()
		defer whole.Close()
		_, err = w.Write(tensor.Bytes(whole))
		runtime.KeepAlive(whole)
	})
	return errors.Join(err, guarded)
}

// Options are options of [Decode]. The zero value is valid.
type Options struct {
	// MaxBytes limits the number of bytes of elements. If it is 0, the limit is the memory
	// available to the process on the machine and in its cgroup, but at least 64 MiB.
	MaxBytes int64
}

// Decode reads an .npy file from r to the heap. The caller must close the tensor. Decode does not
// read past the last element, so several arrays may follow each other.
//
// Memory is allocated as the elements arrive, so a malformed header cannot cause a large
// allocation.
//
// The error is an [*encoding.FileError] that wraps [ErrFormat], [ErrDType], [ErrLimit] or the error
// of r. If r ends early, it also wraps [io.ErrUnexpectedEOF].
func Decode(r io.Reader, opts Options) (*tensor.Tensor, error) {
	h, err := readHeader(r)
	if err == nil {
		err = safefile.CheckSize(int64(h.size), safefile.UnknownSize, opts.MaxBytes,
			"raise Options.MaxBytes if this is intended")
	}
	var t *tensor.Tensor
	if err == nil {
		t, err = h.decode(r)
	}
	if err != nil {
		return nil, wrapError("", "", err)
	}
	return t, nil
}

// decode reads the elements from r to the heap. The caller must close the tensor. The error
// wraps [ErrFormat] if r ends early.
func (h header) decode(r io.Reader) (*tensor.Tensor, error) {
	t, err := foreignTensors.ReadFrom(r, h.size)
	if err != nil {
		return nil, truncatedError(err)
	}
	defer t.Close()
	h.normalizeElements(tensor.Bytes(t))
	return h.viewStorage(t.Storage())
}

// Load reads an .npy file to the heap. The caller must close the tensor. An array in Fortran
// order becomes a tensor with column-major strides. The error is an [*encoding.FileError] that
// wraps [ErrFormat], [ErrDType], [ErrLimit] or the error of opening or reading.
func Load(path string) (*tensor.Tensor, error) { return open(path, read) }

// Map maps an .npy file. The elements of the tensor are pages of the file, which the kernel
// loads on access and copies on write; see [tensor.FromFile]. A big-endian or unaligned file is
// read to the heap instead. The caller must close the tensor. It returns the same errors as
// [Load].
func Map(path string) (*tensor.Tensor, error) { return open(path, mapArray) }

// open opens a file, reads its header and calls how, which must close f. It returns the tensor
// of how, or an [*encoding.FileError].
func open(path string, how func(f *os.File, h header) (*tensor.Tensor, error)) (*tensor.Tensor, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, wrapError(path, "", err)
	}
	h, err := readHeader(f)
	if err == nil {
		err = h.checkSize(f)
	}
	if err != nil {
		return nil, wrapError(path, "", errors.Join(err, f.Close()))
	}
	var t *tensor.Tensor
	guarded := tensor.Catch(func() { t, err = how(f, h) })
	if err = errors.Join(err, guarded); err != nil {
		return nil, wrapError(path, "", err)
	}
	return t, nil
}

// checkSize verifies that the file contains all elements. Bytes after them are ignored, as in
// numpy. The error wraps [ErrFormat] if the file is too short.
func (h header) checkSize(f *os.File) error {
	info, err := f.Stat()
	if err == nil && info.Size()-int64(h.length) < int64(h.size) {
		err = malformed("%v of %v needs %d bytes, got %d", h.shape, h.dtype, h.size, info.Size()-int64(h.length))
	}
	return err
}

// read reads the elements, which begin at offset h.length of f, to the heap. It always closes f.
// The error wraps [ErrFormat] if the file is truncated, or [ErrLimit] if this process cannot
// allocate enough memory.
func read(f *os.File, h header) (*tensor.Tensor, error) {
	defer f.Close()
	if err := safefile.CheckSize(int64(h.size), int64(h.size), 0, "use Map"); err != nil {
		return nil, err
	}
	t := tensor.Empty(tensor.Uint8, h.size)
	defer t.Close()
	if err := foreignTensors.ReadFileAt(t, f, int64(h.length)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	h.normalizeElements(tensor.Bytes(t))
	return h.viewStorage(t.Storage())
}

// mapArray maps the elements, or reads them if they must be swapped or are not aligned. The
// caller must close the tensor. It takes ownership of f, also if there is an error.
func mapArray(f *os.File, h header) (*tensor.Tensor, error) {
	if h.swapped || h.length%h.dtype.Size() != 0 {
		return read(f, h)
	}
	m, err := foreignTensors.MapFile(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	defer m.Close()
	t, err := m.Storage(int64(h.length), int64(h.size))
	if err != nil {
		return nil, err
	}
	defer t.Close()
	h.normalizeElements(tensor.Bytes(t))
	return h.viewStorage(t.Storage())
}
