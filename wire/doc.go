// Package wire tells Shoal of a program's own types and errors, so that they cross processes.
//
// Most values need nothing: numbers, strings, times, slices, maps, structs of exported fields,
// pointers, tensors and the objects of packages ipc and manager travel as they are. A type that
// implements [encoding.BinaryMarshaler] and [encoding.BinaryUnmarshaler] travels as the bytes that
// it gives. Two things must be told, in an init function or a package variable, in every program
// that takes part:
//
//   - a type that a message holds in an interface: [RegisterType];
//   - an error that [errors.Is] shall find in another process: [RegisterError].
//
// The trap: both sides must use the same name for the same type. A receiver that does not know the
// name returns [ErrUnknownType].
package wire
