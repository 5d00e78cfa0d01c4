// Package wire registers a program's own types and errors, so that their values cross processes.
//
// Most values need nothing: numbers, strings, times, slices, maps, structs of exported fields,
// pointers, tensors and the objects of packages ipc and manager travel as they are. A value whose
// type implements [encoding.BinaryMarshaler] and [encoding.BinaryUnmarshaler] travels as the bytes
// of MarshalBinary. Every program that takes part registers two things, in an init function or a
// package variable:
//
//   - a type whose values messages hold in an interface: [RegisterType];
//   - an error that [errors.Is] should find in another process: [RegisterError].
//
// The trap: both sides must use the same name for the same type. A receiver that does not know the
// name returns [ErrUnknownType].
package wire
