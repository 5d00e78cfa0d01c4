package codec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// A RemoteError is an error from another process. It has the error's text and the causes that this
// process knows, so [errors.Is] and [errors.As] return the same results as there.
//
// An error that consists of one cause, such as io.EOF or a value of a registered type, arrives as
// that cause.
type RemoteError struct {
	Text   string  // result of Error in the other process
	Causes []error // registered sentinels and values of registered types
}

// Error returns the text.
func (e *RemoteError) Error() string { return e.Text }

// Unwrap returns the causes.
func (e *RemoteError) Unwrap() []error { return e.Causes }

// errorTags are the tags of [text, names of sentinels, registered values].
var errorTags = &Tags{"error", []int{3}}

// An errorCodec is the codec of the type error, inside a nilCodec. It writes an error as its
// text, the names of the registered sentinels that it matches, and the values of registered
// types in its chain.
type errorCodec struct{}

func (errorCodec) encode(e *Encoder, v reflect.Value) error {
	err := v.Interface().(error)
	e.Tag(errorTags, 0)
	e.String(textOf(err))
	encodeNames(e, err)
	return encodeTyped(e, err)
}

func encodeNames(e *Encoder, err error) {
	names := sentinelsOf(err)
	e.ArrayLen(len(names))
	for _, name := range names {
		e.String(name)
	}
}

func encodeTyped(e *Encoder, err error) error {
	typed := appendTyped(nil, err)
	e.ArrayLen(len(typed))
	for _, cause := range typed {
		start, before := len(e.buf), e.err
		r, _ := typeOf(cause)
		if err := encodeTagged(e, r, cause); err != nil || e.err != before {
			// An error must arrive even if one of its causes cannot be encoded.
			e.buf, e.err = e.buf[:start], before
			e.Nil()
		}
	}
	return e.err
}

// appendTyped appends to list the errors of registered types in the tree of err, and returns the
// list. It does not look below such a value. Errors below it travel as part of the value, and a
// second copy at each level would double a chain at each level.
func appendTyped(list []error, err error) []error {
	if isNilPointer(err) {
		return list
	}
	if _, known := typeOf(err); known {
		return append(list, err)
	}
	switch w := err.(type) {
	case interface{ Unwrap() error }:
		if cause := w.Unwrap(); cause != nil {
			return appendTyped(list, cause)
		}
	case interface{ Unwrap() []error }:
		for _, cause := range w.Unwrap() {
			if cause != nil {
				list = appendTyped(list, cause)
			}
		}
	}
	return list
}

func isNilPointer(err error) bool {
	v := reflect.ValueOf(err)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func (errorCodec) decode(d *Decoder, v reflect.Value) error {
	if err := d.OnlyTag(errorTags); err != nil {
		return err
	}
	text, err := d.String()
	if err != nil {
		return err
	}
	known, err := decodeNames(d)
	if err != nil {
		return err
	}
	typed, err := decodeTyped(d)
	if err == nil {
		v.Set(reflect.ValueOf(newRemoteError(text, known, typed)))
	}
	return err
}

// decodeNames reads a list of names and returns the sentinels that are registered under them
// here. It skips other names. Names come sorted and once each, so known is no longer than the
// list of sentinels.
func decodeNames(d *Decoder) (known []error, err error) {
	n, err := d.ArrayLen()
	for last := ""; n > 0 && err == nil; n-- {
		at := d.off
		var name string
		if name, err = d.String(); err == nil && name <= last {
			err = d.formatError(at, "name %q follows %q, want ascending order", name, last)
		}
		if s := sentinelNamed(name); s != nil {
			known = append(known, s)
		}
		last = name
	}
	return known, err
}

// decodeTyped reads a list of values and returns those with types that are registered here. It
// skips the others.
func decodeTyped(d *Decoder) (typed []error, err error) {
	n, err := d.ArrayLen()
	for ; n > 0 && err == nil; n-- {
		if d.IsNil() { // the sender could not send it
			continue
		}
		var cause error
		if cause, err = decodeCause(d); cause != nil {
			typed = append(typed, cause)
		}
	}
	return typed, err
}

// decodeCause reads one value of an error's chain. It returns nil and no error if its type is
// not registered here, and [ErrFormat] if the value is not an error.
func decodeCause(d *Decoder) (error, error) {
	at := d.off
	v, name, err := decodeTagged(d)
	if v == nil || err != nil {
		return nil, err
	}
	cause, ok := v.(error)
	if !ok || isNilPointer(cause) {
		return nil, d.formatError(at, "error cause has type %s, want an error", name)
	}
	return cause, nil
}

// newRemoteError returns a [RemoteError] with the given text, and the sentinels and the typed
// errors as its causes. If one cause has the same text and matches all of them, it returns that
// cause instead.
func newRemoteError(text string, known, typed []error) error {
	candidates := known
	if len(typed) > 0 {
		candidates = typed[:1]
	}
	for _, cause := range candidates {
		if len(typed) <= 1 && textOf(cause) == text && isAll(cause, known) {
			return cause
		}
	}
	return &RemoteError{Text: text, Causes: slices.Concat(known, typed)}
}

func isAll(err error, known []error) bool {
	return !slices.ContainsFunc(known, func(s error) bool { return !isError(err, s) })
}

// textOf returns err.Error(). If that panics, it returns a text that says so, because methods of
// a decoded error, or of a nil pointer, may find nil in place of a cause.
func textOf(err error) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprintf("%T: its Error method panicked: %v", err, p)
		}
	}()
	return err.Error()
}

// isError is [errors.Is], but returns false if a method of an error panics; see textOf.
func isError(err, target error) (found bool) {
	defer func() {
		if recover() != nil {
			found = false
		}
	}()
	return errors.Is(err, target)
}
