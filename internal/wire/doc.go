// Package wire turns values into bytes and handles, and back: it is what a process says to another.
//
// A [Plan] is made once for each Go type and says whether values of the type can cross at all, so a
// program that passes what cannot be passed fails when it starts and names the field. A [Message]
// is MessagePack, which a Python peer reads as it is, and a table of the blocks of shared memory
// that the bytes refer to by index.
//
// # What can cross
//
// Booleans, numbers, strings, slices, arrays, maps, pointers, structs, time.Time, types with
// MarshalBinary or MarshalText, errors, an any that holds a type known to [RegisterType], open
// files (*os.File), and types with MarshalWire, such as tensors and queues. Nil stays nil.
// Functions, channels, other interfaces, addresses, locks, contexts and structs with unexported
// fields cannot; a field tagged `wire:"-"` stays at home.
//
// A file arrives as another descriptor of the same open file, under its name. The sender's stays
// the sender's, and the receiver's is the receiver's to close. The process that made the domain
// keeps one while it is under way, and closes it within a second if nobody receives it. A
// connection or a listener of package net travels as what its method File returns, of which
// net.FileConn and net.FileListener make one again.
//
// # What is lost
//
// Pointers are trees: two pointers to one value arrive as two values, unless [CustomOnce] says so,
// and a cycle is [ErrTooDeep]. A time keeps its instant, not its location. Of an error arrive its
// text, the sentinels that [RegisterError] knows, and its causes of registered types.
//
// # The trap
//
// A struct is written as the list of its fields, without names, so both processes must have been
// built from the same declaration: workers started by package shoal are the same executable. For
// peers that are not, write a type with MarshalWire, or a map.
//
// Blocks are counted. An [Encoder] takes no reference of a block: hold it until Done. A [Decoder]
// takes one for each use: the value's decoder releases it.
package wire
