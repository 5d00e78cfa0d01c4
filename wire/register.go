package wire

import "github.com/shoal-mp/shoal/internal/codec"

// RegisterType allows values of type T to be sent in an interface, such as any. If T is an error,
// values can also be sent in the chain of an error, and [errors.As] finds them. Both processes must
// register T under the same name, so it should be called from init. It panics if T cannot be sent,
// or if the name or T is already registered.
//
// Booleans, numbers, strings, []byte, time.Time, time.Duration, []any, map[string]any and slices of
// strings and of common number types are registered under their Go names, as are *os.File and
// *fs.PathError.
func RegisterType[T any](name string) { codec.RegisterType[T](name) }

// RegisterError preserves the identity of a sentinel error: [errors.Is](e, err) is true for a
// received error e if it was true in the sending process. Both processes must register err under
// the same name, so it should be called from init. It panics if err is nil or the name is already
// registered.
//
// The sentinels of packages io, io/fs, os, context and errors are already registered under their Go
// names.
func RegisterError(name string, err error) { codec.RegisterError(name, err) }

// Errors that describe why a value cannot be encoded or decoded. They are wrapped and should be
// tested with [errors.Is].
var (
	// ErrType is wrapped if values of a type cannot be sent.
	ErrType = codec.ErrType
	// ErrFormat is wrapped, with an offset in bytes, if a message does not have the expected type.
	ErrFormat = codec.ErrFormat
	// ErrTag is wrapped, together with ErrFormat, if a message from a newer program has a form that
	// this program does not know.
	ErrTag = codec.ErrTag
	// ErrOverflow is wrapped if a number does not fit in its Go type.
	ErrOverflow = codec.ErrOverflow
	// ErrTooDeep is wrapped if values are nested too deeply. The usual cause is a cycle of
	// pointers.
	ErrTooDeep = codec.ErrTooDeep
	// ErrTooLong is wrapped if a message exceeds its limit, which is 64 MiB unless an option
	// changes it. Tensors do not count, because only their handles are sent.
	ErrTooLong = codec.ErrTooLong
	// ErrUnknownType is wrapped if a message contains a type that is not registered in this
	// process.
	ErrUnknownType = codec.ErrUnknownType
	// ErrNoBlock is wrapped if a message refers to shared memory that it does not contain.
	ErrNoBlock = codec.ErrNoBlock
)
