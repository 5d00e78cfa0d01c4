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

// foreignTensors makes tensors over mapped files.
var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// Save writes a tensor as a .npy of version 1, in C's order, as numpy.save does. It writes a map of
// tensors as an .npz, in the order of their names, as numpy.savez does. Save writes a temporary
// file beside path, and renames it to path when it is whole. The error wraps ErrDType where numpy
// does not have the dtype, such as bfloat16, or tensor.ErrClosed where a tensor is nil or closed.
// Otherwise it is the error of writing.
func Save[T *tensor.Tensor | map[string]*tensor.Tensor](path string, of T) error {
	return safefile.Replace(path, func(f *os.File) error { return Encode(f, of) })
}

// Encode writes to w the bytes that Save writes to a file. The error wraps ErrDType or
// tensor.ErrClosed, or is the error of w.
func Encode[T *tensor.Tensor | map[string]*tensor.Tensor](w io.Writer, of T) error {
	switch of := any(of).(type) {
	case map[string]*tensor.Tensor:
		return encodeAll(w, of)
	default:
		return encode(w, of.(*tensor.Tensor))
	}
}

// encode writes a .npy.
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

// Decode reads a .npy from r to the heap. The caller closes the tensor. Decode reads r up to the
// last element and no further, so several arrays may follow one another.
//
// maxBytes is how many bytes of elements the array may have. 0 stands for the memory that the
// machine and the cgroup have left for this process, and for 64 MiB where they have less. The
// memory for them grows as they come, so a header that lies takes none.
//
// The error is an [*encoding.FileError]. It wraps ErrFormat, ErrDType, ErrLimit or the error of r.
// Where r ends early it wraps io.ErrUnexpectedEOF as well.
func Decode(r io.Reader, maxBytes int64) (*tensor.Tensor, error) {
	h, err := readHeader(r)
	if err == nil {
		err = safefile.CheckSize(int64(h.size), safefile.UnknownSize, maxBytes, "raise maxBytes if that is meant")
	}
	var t *tensor.Tensor
	if err == nil {
		t, err = h.decode(r)
	}
	if err != nil {
		return nil, about("", "", err)
	}
	return t, nil
}

// decode reads the elements.
func (h header) decode(r io.Reader) (*tensor.Tensor, error) {
	t, err := foreignTensors.ReadFrom(r, h.size)
	if err != nil {
		return nil, cutShort(err)
	}
	defer t.Close()
	h.clean(tensor.Bytes(t))
	return h.view(t.Storage())
}

// Load reads a .npy to the heap. The caller closes the tensor. An array in Fortran's order becomes
// a tensor with such strides. The error is an [*encoding.FileError].
func Load(path string) (*tensor.Tensor, error) { return open(path, read) }

// Map maps a .npy. The elements of the tensor are pages of the file, which the kernel reads when
// they are touched and copies when they are written to: see [tensor.FromFile]. A file of the other
// byte order is read to the heap instead. The caller closes the tensor. The error is an
// [*encoding.FileError].
func Map(path string) (*tensor.Tensor, error) { return open(path, mapped) }

// open lets how make a tensor of a file.
func open(path string, how func(f *os.File, h header) (*tensor.Tensor, error)) (*tensor.Tensor, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, about(path, "", err)
	}
	h, err := readHeader(f)
	if err == nil {
		err = h.fits(f)
	}
	if err != nil {
		return nil, about(path, "", errors.Join(err, f.Close()))
	}
	var t *tensor.Tensor
	guarded := tensor.Catch(func() { t, err = how(f, h) })
	if err = errors.Join(err, guarded); err != nil {
		return nil, about(path, "", err)
	}
	return t, nil
}

// fits checks that the file has all elements. What follows them is passed over, as numpy does.
func (h header) fits(f *os.File) error {
	info, err := f.Stat()
	if err == nil && info.Size()-int64(h.length) < int64(h.size) {
		err = malformed("%v of %v need %d bytes, and it has %d", h.shape, h.dtype, h.size, info.Size()-int64(h.length))
	}
	return err
}

// read reads the elements, and closes f.
func read(f *os.File, h header) (*tensor.Tensor, error) {
	defer f.Close()
	if err := safefile.CheckSize(int64(h.size), int64(h.size), 0, "Map maps it"); err != nil {
		return nil, err
	}
	t := tensor.Empty(tensor.Uint8, h.size)
	defer t.Close()
	if err := foreignTensors.ReadFileAt(t, f, int64(h.length)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	h.clean(tensor.Bytes(t))
	return h.view(t.Storage())
}

// mapped maps the elements; f goes with them.
func mapped(f *os.File, h header) (*tensor.Tensor, error) {
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
	h.clean(tensor.Bytes(t))
	return h.view(t.Storage())
}
