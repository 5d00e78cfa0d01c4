package wire

import "github.com/shoal-mp/shoal/internal/codec"

// RegisterType lets values of type T travel in an interface, such as any. If T is an error, it lets
// them travel in the chain of an error as well, where errors.As finds them. Both processes must
// register T under the same name, so call it from init. It panics if T cannot cross, and if the
// name or T is registered already.
//
// Booleans, numbers, strings, []byte, time.Time, time.Duration, []any, map[string]any and slices of
// strings and of the common numbers are registered under their Go names, and so are *os.File and
// *fs.PathError.
func RegisterType[T any](name string) { codec.RegisterType[T](name) }

// RegisterError lets the identity of a sentinel err cross processes: errors.Is(e, err) is true for
// an error e that arrives if it was true in the process that sent e. Both processes must register
// err under the same name, so call it from init. It panics if err is nil or the name is taken.
//
// The sentinels of packages io, io/fs, os, context and errors are registered from the start, under
// their Go names.
func RegisterError(name string, err error) { codec.RegisterError(name, err) }

// The reasons why a value cannot cross. Test for them with errors.Is.
var (
	// ErrType is wrapped where a type cannot cross processes.
	ErrType = codec.ErrType
	// ErrFormat is wrapped, with an offset in bytes, where a message is not one of the wanted type.
	ErrFormat = codec.ErrFormat
	// ErrTag is wrapped, beside ErrFormat, where a message of a newer program has a form that this
	// program does not know.
	ErrTag = codec.ErrTag
	// ErrOverflow is wrapped where a number does not fit the Go type that should hold it.
	ErrOverflow = codec.ErrOverflow
	// ErrTooDeep is wrapped where values nest too deeply. The usual cause is a cycle of pointers.
	ErrTooDeep = codec.ErrTooDeep
	// ErrTooLong is wrapped where a message is longer than its limit, 64 MiB unless an option says
	// otherwise. Tensors do not count: only their handles travel.
	ErrTooLong = codec.ErrTooLong
	// ErrUnknownType is wrapped where a message holds a type that is not registered in this
	// process.
	ErrUnknownType = codec.ErrUnknownType
	// ErrNoBlock is wrapped where a message names shared memory that it does not carry.
	ErrNoBlock = codec.ErrNoBlock
)
