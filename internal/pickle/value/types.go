package value

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/pickle"
)

// The values of Python that have no type of their own in Go.
type (
	Tuple     = pickle.Tuple
	Dict      = pickle.Dict
	Set       = pickle.Set
	ByteArray = pickle.ByteArray
	Global    = pickle.Global
)

// What may go wrong; package torch exports them.
var (
	ErrProtocol    = errors.New("torch: not what torch.multiprocessing says")
	ErrUnsupported = errors.New("torch: value cannot cross")
)

// Malformed returns an error that wraps ErrProtocol.
func Malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// Unsupported returns an error that wraps ErrUnsupported.
func Unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// A Record is an object of a class that only Python knows, as data: it was not made, and nothing of
// it ran.
type Record struct {
	Class Global
	Args  Tuple // of its constructor
	State any   // its attributes: a *Dict, as a rule
}

// Attr returns an attribute.
func (r *Record) Attr(name string) (v any, ok bool) {
	d, _ := r.State.(*Dict)
	return d.Get(name)
}
