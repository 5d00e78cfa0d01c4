// Package wire registers a program's types and errors, so that their values can be sent to other
// processes.
//
//	type Circle struct{ Radius float64 }
//
//	var ErrNegative = errors.New("negative radius")
//
//	func init() {
//		wire.RegisterType[Circle]("shapes.Circle")
//		wire.RegisterError("shapes.ErrNegative", ErrNegative)
//	}
//
//	func send(ctx context.Context, q *ipc.Queue[any]) error {
//		return q.Put(ctx, Circle{Radius: 2}) // in an interface
//	}
//
// Start with [RegisterType] and [RegisterError].
//
// Most values need no registration: numbers, strings, times, slices, maps, structs of exported
// fields, pointers, tensors and the objects of packages ipc and manager. A value that implements
// [encoding.BinaryMarshaler] and [encoding.BinaryUnmarshaler] is sent as the bytes of
// MarshalBinary. All participating programs must register the following, in an init function or a
// package variable:
//
//   - types of values in interfaces: [RegisterType];
//   - errors that [errors.Is] should match in another process: [RegisterError].
//
// The trap: both sides must use the same name for the same type. A receiver that does not know the
// name returns [ErrUnknownType].
package wire
