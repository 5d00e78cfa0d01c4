package dist

import (
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
)

// Clip shortens what a rank tells others of an error.
var Clip = shortenText

// Letter is what one rank sends to another.
type Letter = letter

// LetterOf returns one of a tensor, to be encoded.
func LetterOf(t *tensor.Tensor) Letter { return letter{from: 1, tag: 3, tensor: t} }

// LetterOfValue returns one of a value, until done is called.
func LetterOfValue[T any](v T) (l Letter, done func(sent bool), err error) {
	p, done, err := packValue(v, false)
	return letter{from: 1, tag: 3, value: p}, done, err
}

// OpenLetter returns the value in a letter, which is used up.
func OpenLetter[T any](l Letter) (T, error) { return openLetter[T](l) }

// CloseLetter gives back what it holds.
func CloseLetter(l Letter) error { return l.close() }

// TensorOf returns the tensor of a letter, nil if it has a value.
func TensorOf(l Letter) *tensor.Tensor { return l.tensor }

// BlockOf returns the handle of the block that contains a tensor.
func BlockOf(t *tensor.Tensor) arena.Handle {
	h, _ := tensors.Block(t)
	return arena.Handle(h)
}

// FailOpens makes every opening of another rank's tensor fail with err until restore is called.
func FailOpens(err error) (restore func()) {
	old := tensors.OpenBlock
	tensors.OpenBlock = func(uint64, tensor.DType, int, int) (*tensor.Tensor, error) { return nil, err }
	return func() { tensors.OpenBlock = old }
}
