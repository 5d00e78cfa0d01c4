package pickle

import (
	"fmt"
	"io"
)

// A Decoder reads pickles that follow one another, with nothing between them and perhaps no end of
// the stream after them. It may read ahead.
type Decoder struct {
	// Persistent makes the value of a reference to something outside the pickle; where it is nil
	// that is a [*Persistent].
	Persistent func(id any) (any, error)

	src     source
	globals Globals
	limits  Limits
}

// Offset returns where in the stream the last pickle ended.
func (d *Decoder) Offset() int64 { return d.src.at }

// NewDecoder returns a decoder of what r has. The names of package builtins and collections that
// the table in the package comment implies are always allowed.
func NewDecoder(r io.Reader, allowed Globals, limits Limits) *Decoder {
	return &Decoder{src: source{r: r, room: make([]byte, buffer)}, globals: allowed, limits: limits.orDefaults()}
}

// buffer is how many bytes are read ahead at most.
const buffer = 4096

// Decode reads one pickle. The error is io.EOF where there is none. On a *GlobalError, or one that
// wraps ErrForm, and only then, Decode returns all that it has read as well, for a caller that must
// give back what the pickle names: the refused name and its calls are a Global and Objects in it.
func (d *Decoder) Decode() (any, error) {
	if err := d.src.fill(); err != nil {
		return nil, err
	}
	d.src.left = d.limits.Bytes
	m := &machine{src: &d.src, globals: d.globals, persistent: d.Persistent, limits: d.limits,
		room: d.limits.Items, stack: make([]any, 0, stackRoom)}
	v, op, err := m.run()
	if err != nil {
		return nil, &SyntaxError{d.src.at, op, err}
	}
	if made := d.limits.Items - m.room; made > d.limits.Depth { // fewer cannot nest deeper
		if err := checkDepth(v, d.limits.Depth); err != nil {
			return nil, &SyntaxError{d.src.at, opStop, err}
		}
	}
	if m.refused != nil {
		if len(m.aside) > 0 {
			v = append(Tuple{v}, m.aside...)
		}
		return v, m.refused
	}
	return v, nil
}

// Unmarshal reads the one pickle that b is. See Decode for the errors.
func Unmarshal(b []byte, allowed Globals, limits Limits) (any, error) {
	return one(source{ahead: b}, int64(len(b)), allowed, limits)
}

// Read reads the one pickle that the n bytes of r are, without a copy of them as a whole. See
// Decode for the errors.
func Read(r io.Reader, n int64, allowed Globals, limits Limits) (any, error) {
	return one(source{r: r, room: make([]byte, max(1, min(n, buffer)))}, n, allowed, limits)
}

// one decodes the n bytes of a source.
func one(src source, n int64, allowed Globals, limits Limits) (any, error) {
	limits = limits.orDefaults()
	if n > limits.Bytes {
		return nil, &SyntaxError{0, opProto, fmt.Errorf("%d bytes: %w", n, ErrLimit)}
	}
	limits.Bytes = n // lengths beyond it are refused before anything is allocated
	src.whole = true
	d := &Decoder{src: src, globals: allowed, limits: limits}
	v, err := d.Decode()
	if err == io.EOF {
		err = &SyntaxError{0, opProto, unexpected(err)}
	}
	if v == nil && err != nil {
		return nil, err
	}
	if d.src.at != n {
		return nil, &SyntaxError{d.src.at, opStop, malformed("%d bytes follow its end", n-d.src.at)}
	}
	return v, err
}
