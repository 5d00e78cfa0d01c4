package pickle

import (
	"fmt"
	"io"
)

// Decoder decodes consecutive pickles from a stream, which may remain open after them. It may read
// ahead. It must not be used from several goroutines at once.
type Decoder struct {
	// Persistent returns the value of a persistent ID. If it is nil, the value is a [*Persistent].
	Persistent func(id any) (any, error)

	src     source
	globals Globals
	limits  Limits
}

// Offset returns the stream offset, in bytes, of the end of the last pickle.
func (d *Decoder) Offset() int64 { return d.src.at }

// NewDecoder returns a decoder that reads from r. allowed decides which names a pickle may use;
// a nil allowed permits the standard names only, which the table in the package documentation
// implies and which are always allowed. limits applies to each pickle.
func NewDecoder(r io.Reader, allowed Globals, limits Limits) *Decoder {
	return &Decoder{src: source{r: r, room: make([]byte, buffer)}, globals: allowed, limits: limits.withDefaults()}
}

// buffer is the size of the read-ahead buffer in bytes.
const buffer = 4096

// Decode decodes one pickle. It returns [io.EOF] if there is none. If the error is a
// [*GlobalError] or wraps [ErrForm], Decode also returns the decoded value, so that the caller
// can release resources that the pickle names. The value then contains the refused name as a
// [Global] and its calls as [Object] values. For all other errors, the value is nil. A malformed
// pickle, or one that exceeds the limits, is a [*SyntaxError].
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
	if made := d.limits.Items - m.room; made > d.limits.Depth { // fewer cannot be deeper
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

// Unmarshal decodes the pickle b, which must not be followed by other bytes. It returns the same
// errors as [Decoder.Decode], except that an empty b is a [*SyntaxError]. The value shares no
// memory with b.
func Unmarshal(b []byte, allowed Globals, limits Limits) (any, error) {
	return decodeSource(source{ahead: b}, int64(len(b)), allowed, limits)
}

// Read decodes a pickle of exactly n bytes from r without copying it as a whole. It returns the
// same errors as [Decoder.Decode].
func Read(r io.Reader, n int64, allowed Globals, limits Limits) (any, error) {
	return decodeSource(source{r: r, room: make([]byte, max(1, min(n, buffer)))}, n, allowed, limits)
}

// decodeSource decodes a pickle that must consist of the n bytes of a source. It returns the same
// errors as [Decoder.Decode], except that the error for an empty source is a [*SyntaxError]. The
// error wraps [ErrLimit] if the pickle exceeds the limits.
func decodeSource(src source, n int64, allowed Globals, limits Limits) (any, error) {
	limits = limits.withDefaults()
	if n > limits.Bytes {
		return nil, &SyntaxError{0, opProto, fmt.Errorf("%d bytes: %w", n, ErrLimit)}
	}
	limits.Bytes = n // longer lengths are refused before any allocation
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
		return nil, &SyntaxError{d.src.at, opStop, malformed("%d extra bytes after its end", n-d.src.at)}
	}
	return v, err
}
