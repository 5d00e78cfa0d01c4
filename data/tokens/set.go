package tokens

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// Errors of a file, in an [*encoding.FileError], or of options. Test for them with [errors.Is].
var (
	// ErrOption is wrapped if an option is out of range.
	ErrOption = errors.New("tokens: invalid option")
	// ErrShort is wrapped if a file has fewer tokens than a window and one more.
	ErrShort = errors.New("tokens: fewer tokens than a window plus one")
	// ErrType is wrapped if the elements of a file are not tokens, or if its size is not a multiple
	// of the DType's size.
	ErrType = errors.New("tokens: unsupported token dtype")
	// ErrVocabulary is wrapped if a token is negative or not below Options.Vocabulary.
	ErrVocabulary = errors.New("tokens: not in the vocabulary")
)

// The errors are registered so that errors.Is recognizes them in the parent of a worker process.
func init() {
	codec.RegisterError("tokens.ErrOption", ErrOption)
	codec.RegisterError("tokens.ErrShort", ErrShort)
	codec.RegisterError("tokens.ErrType", ErrType)
	codec.RegisterError("tokens.ErrVocabulary", ErrVocabulary)
}

// Options configure [Open].
type Options struct {
	Length int // tokens in a window
	Stride int // distance between the beginnings of windows, in tokens; 0 means Length
	// dtype of a file without a header: Uint16, Uint32, Int32 or Int64. Bool, the zero value, means
	// Uint16
	DType      tensor.DType
	Vocabulary int // tokens must be below this number; 0 disables the check
}

// A set is the windows of a file of tokens. It is made by [Open]. Several goroutines may use it.
type set struct {
	path    string
	tokens  *tensor.Tensor
	options Options
}

var _ data.Gatherer = (*set)(nil)

// Open maps a file as a data set of windows. A file with the extension .npy must be a
// one-dimensional NumPy array. Any other file consists of little-endian tokens without a header, as
// written by nanoGPT. The kernel reads pages on demand. The data set is a [data.Gatherer] and may
// be used from several goroutines. The caller must close it. The error is an [*encoding.FileError]
// for a malformed file, also if it has no window ([ErrShort]), and wraps [ErrOption] or [ErrType]
// for invalid options.
func Open(path string, o Options) (data.DatasetCloser, error) {
	if o.Stride == 0 {
		o.Stride = o.Length
	}
	if o.DType == tensor.Bool {
		o.DType = tensor.Uint16
	}
	if o.Length < 1 || o.Stride < 1 || o.Vocabulary < 0 {
		return nil, fmt.Errorf("%w: windows of %d tokens, every %d, of a vocabulary of %d", ErrOption,
			o.Length, o.Stride, o.Vocabulary)
	}
	t, err := mapTokens(path, o.DType)
	if err != nil {
		return nil, err
	}
	s := &set{path, t, o}
	if err := s.check(); err != nil {
		t.Close()
		return nil, &encoding.FileError{Path: path, Err: err}
	}
	return s, nil
}

func mapTokens(path string, dt tensor.DType) (*tensor.Tensor, error) {
	if strings.HasSuffix(path, ".npy") {
		t, err := npy.Map(path)
		if err != nil {
			return nil, fmt.Errorf("open tokens: %w", err)
		}
		return t, nil
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open tokens: %w", err)
	}
	if !isToken(dt) {
		return nil, fmt.Errorf("%w: %v", ErrType, dt)
	}
	if size := int64(dt.Size()); st.Size()%size != 0 || st.Size() == 0 {
		return nil, &encoding.FileError{Path: path, Offset: st.Size(),
			Err: fmt.Errorf("%w: %d bytes are not a multiple of the token size %d", ErrType, st.Size(), size)}
	}
	t, err := tensor.FromFile(path, dt, int(st.Size())/dt.Size())
	if err != nil {
		return nil, fmt.Errorf("open tokens: %w", err)
	}
	return t, nil
}

func isToken(dt tensor.DType) bool {
	switch dt {
	case tensor.Uint16, tensor.Uint32, tensor.Int32, tensor.Int64:
		return true
	}
	return false
}

// check returns an error that wraps [ErrType] if the mapped tensor does not contain tokens, or
// [ErrShort] if it has fewer than a window and the token after it.
func (s *set) check() error {
	t := s.tokens
	switch {
	case t.Dims() != 1 || !isToken(t.DType()) || !t.IsContiguous():
		return fmt.Errorf("%w: %v of shape %v", ErrType, t.DType(), t.Shape())
	case s.Len() < 1:
		return fmt.Errorf("%w: %d, and windows of %d", ErrShort, t.Numel(), s.options.Length)
	}
	return nil
}

// Len returns the number of windows that are followed by another token.
func (s *set) Len() int {
	if spare := s.tokens.Numel() - 1 - s.options.Length; spare >= 0 {
		return spare/s.options.Stride + 1
	}
	return 0
}

// Close unmaps the file.
func (s *set) Close() error { return s.tokens.Close() }

// Get implements [data.Dataset]. It returns window i, and the same window shifted by one token,
// as Int64 tensors, which the caller must close. Errors are as with read.
func (s *set) Get(_ context.Context, i int) (data.Sample, error) {
	x, y := make([]int64, s.options.Length), make([]int64, s.options.Length)
	if err := s.read(i, x, y); err != nil {
		return nil, err
	}
	return data.Sample{tensor.FromSlice(x, len(x)), tensor.FromSlice(y, len(y))}, nil
}

// Gather writes window indices[k] to row k of into[0], and the same window shifted by one token
// to row k of into[1]. Errors are as with Get.
func (s *set) Gather(_ context.Context, indices []int, into data.Batch) error {
	n := s.options.Length
	x, y := tensor.Data[int64](into[0]), tensor.Data[int64](into[1])
	for k, i := range indices {
		if err := s.read(i, x[k*n:][:n], y[k*n:][:n]); err != nil {
			return err
		}
	}
	into[0].Touch()
	into[1].Touch()
	return nil
}
