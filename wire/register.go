package wire

import "github.com/shoal-mp/shoal/internal/wire"

// RegisterType lets values of type T travel in an interface, such as any, and as errors in the
// chain of an error. Both processes must register T under the same name, so call it from init. It
// panics if T cannot cross, and if the name or T is registered already.
//
// Booleans, numbers, strings, []byte, time.Time, time.Duration, []any, map[string]any and slices of
// strings and of the common numbers are registered under their Go names, and so are *os.File and
// *fs.PathError.
func RegisterType[T any](name string) { wire.RegisterType[T](name) }

// RegisterError makes errors.Is(e, err) true for an error e that arrives from a process in which it
// was true. Both processes must register err under the same name, so call it from init. It panics
// if err is nil or the name is taken.
//
// Registered from the start, under their Go names, are the errors of package io, io/fs, os, context
// and errors that callers test for.
func RegisterError(name string, err error) { wire.RegisterError(name, err) }

// The ways in which a value does not cross. Test for them with errors.Is.
var (
	// ErrType is wrapped where a type cannot cross processes.
	ErrType = wire.ErrType
	// ErrFormat is wrapped, with the byte's offset, where bytes are no message of the wanted type.
	ErrFormat = wire.ErrFormat
	// ErrTag is wrapped, beside ErrFormat, where a message of a newer program has a form that this
	// program does not know.
	ErrTag = wire.ErrTag
	// ErrOverflow is wrapped where a number does not fit the Go type that should hold it.
	ErrOverflow = wire.ErrOverflow
	// ErrTooDeep is wrapped where values nest too deeply. The usual cause is a cycle of pointers.
	ErrTooDeep = wire.ErrTooDeep
	// ErrTooLong is wrapped where a message is longer than its limit, 64 MiB unless an option says
	// otherwise. Tensors do not count: only their handles travel.
	ErrTooLong = wire.ErrTooLong
	// ErrUnknownType is wrapped where a message holds a type that is not registered in this
	// process.
	ErrUnknownType = wire.ErrUnknownType
	// ErrNoBlock is wrapped where a message names shared memory that it does not carry.
	ErrNoBlock = wire.ErrNoBlock
)
