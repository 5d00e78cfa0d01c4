package wire

import (
	"errors"
	"fmt"
	"reflect"
)

// The reasons why a value cannot cross. Test for them with errors.Is.
var (
	// ErrType is wrapped by the errors of PlanOf and Check for a type that cannot cross processes.
	ErrType = errors.New("wire: type cannot cross processes")

	// ErrFormat is wrapped, with the byte's offset, by the errors of a Decoder for bytes that are
	// not a message of the wanted type.
	ErrFormat = errors.New("wire: malformed message")

	// ErrTag is wrapped, beside ErrFormat, where a value has a tag that this program does not know.
	ErrTag = errors.New("wire: unknown tag")

	// ErrOverflow is wrapped where a number is well formed but does not fit the Go type that should
	// hold it.
	ErrOverflow = errors.New("wire: number does not fit")

	// ErrTooDeep is wrapped where values nest deeper than Limits.Depth. When encoding, the usual
	// cause is a cycle of pointers.
	ErrTooDeep = errors.New("wire: nested too deeply")

	// ErrTooLong is wrapped where a message is longer than Limits.Bytes or holds more than
	// MaxBlocks blocks.
	ErrTooLong = errors.New("wire: message too long")

	// ErrUnknownType is wrapped where an any holds a type, or a message names one, that
	// RegisterType was not told of in this process.
	ErrUnknownType = errors.New("wire: type is not registered")

	// ErrNoBlock is wrapped where a block is missing: the zero handle is encoded, or a message with
	// blocks arrives where none are accepted.
	ErrNoBlock = errors.New("wire: no such block")
)

// A typeError says which part of a type cannot cross. Its text has no package prefix, because
// callers put the registered name in front: `shoal: Register("train"): job.Log: func() cannot …`.
type typeError struct {
	path   string
	typ    reflect.Type
	advice string
}

func (e *typeError) Error() string {
	s := fmt.Sprintf("%s: %s cannot cross processes", e.path, e.typ)
	if e.advice != "" {
		s += ": " + e.advice
	}
	return s
}

func (e *typeError) Unwrap() error { return ErrType }
