package codec

import (
	"errors"
	"fmt"
	"reflect"
)

// Reasons why a value cannot cross. Callers should test for them with [errors.Is].
var (
	// ErrType is wrapped by the errors of [PlanOf] and [Check] for a type that cannot cross
	// processes.
	ErrType = errors.New("wire: type cannot cross processes")

	// ErrFormat is wrapped, with the byte's offset, by errors of a [Decoder] if the bytes are not a
	// message of the expected type.
	ErrFormat = errors.New("wire: malformed message")

	// ErrTag is wrapped, together with ErrFormat, if a value has a tag that this program does not
	// know.
	ErrTag = errors.New("wire: unknown tag")

	// ErrOverflow is wrapped if a number is well formed but does not fit the Go type.
	ErrOverflow = errors.New("wire: number overflows its type")

	// ErrTooDeep is wrapped if values nest deeper than Limits.Depth. During encoding, the usual
	// cause is a cycle of pointers.
	ErrTooDeep = errors.New("wire: nested too deeply")

	// ErrTooLong is wrapped if a message is longer than Limits.Bytes or has more than [MaxBlocks]
	// blocks.
	ErrTooLong = errors.New("wire: message too long")

	// ErrUnknownType is wrapped if an any contains, or a message names, a type that is not
	// registered with [RegisterType] in this process.
	ErrUnknownType = errors.New("wire: type is not registered")

	// ErrNoBlock is wrapped if a block is missing: the zero handle is encoded, or a message with
	// blocks arrives at a receiver that accepts none.
	ErrNoBlock = errors.New("wire: no such block")
)

// A typeError is the error for a type that cannot cross processes, and says which part of it
// cannot. It wraps [ErrType]. Its text has no package prefix, because callers put the registered
// name in front: `shoal: Register("train"): job.Log: func() cannot …`.
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
