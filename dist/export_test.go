package dist

import "github.com/shoal-mp/shoal/tensor"

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
