package tokens

import (
	"fmt"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/tensor"
)

// read writes window i to x, and the window shifted by one token to y. Both must have
// s.options.Length elements. It returns an error if i is out of range or another process has
// truncated the file, or an [*encoding.FileError] that wraps [ErrVocabulary].
func (s *set) read(i int, x, y []int64) (err error) {
	if i < 0 || i >= s.Len() {
		return fmt.Errorf("window %d is out of range [0, %d)", i, s.Len())
	}
	from, n := i*s.options.Stride, s.options.Length
	fault := tensor.Catch(func() { // another process may truncate the file
		switch s.tokens.DType() {
		case tensor.Uint16:
			writeWindow(x, y, tensor.Data[uint16](s.tokens)[from:][:n+1])
		case tensor.Uint32:
			writeWindow(x, y, tensor.Data[uint32](s.tokens)[from:][:n+1])
		case tensor.Int32:
			writeWindow(x, y, tensor.Data[int32](s.tokens)[from:][:n+1])
		default:
			writeWindow(x, y, tensor.Data[int64](s.tokens)[from:][:n+1])
		}
	})
	if fault != nil {
		return fmt.Errorf("read tokens: %w", fault)
	}
	return s.checkVocabulary(from, x, y)
}

// writeWindow writes all tokens except the last to x, and all except the first to y.
func writeWindow[T uint16 | uint32 | int32 | int64](x, y []int64, tokens []T) {
	for k := range x {
		x[k], y[k] = int64(tokens[k]), int64(tokens[k+1])
	}
}

// checkVocabulary returns an [*encoding.FileError] that wraps [ErrVocabulary] for the first
// token of a window that is outside of the vocabulary. It checks nothing if the option
// Vocabulary is 0. from is the position of x[0] in the file.
func (s *set) checkVocabulary(from int, x, y []int64) error {
	limit := int64(s.options.Vocabulary)
	if limit == 0 {
		return nil
	}
	for k := -1; k < len(y); k++ {
		token := x[0]
		if k >= 0 {
			token = y[k]
		}
		if token < 0 || token >= limit {
			at := from + k + 1
			size := int64(s.tokens.DType().Size())
			return &encoding.FileError{Path: s.path, Offset: int64(at) * size,
				Err: fmt.Errorf("%w: token %d is %d, want at least 0 and less than %d",
					ErrVocabulary, at, token, limit)}
		}
	}
	return nil
}
