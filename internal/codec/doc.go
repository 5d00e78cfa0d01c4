// Package codec turns values into the bytes and handles of messages between processes, and back.
//
// A [Plan] is made once for each Go type, and says whether values of the type can cross at all. So
// a program that passes a value that cannot cross fails when it starts, and names the field. A
// [Message] is MessagePack, which a Python peer reads as it is, and a table of the blocks of shared
// memory to which the bytes refer by index.
//
// # What can cross
//
// Booleans, numbers, strings, slices, arrays, maps, pointers, structs, time.Time, types with
// MarshalBinary or MarshalText, errors, an any that holds a type known to [RegisterType], open
// files (*os.File), types given to [Custom] or [CustomMethods], such as tensors and queues, and
// types with MarshalWire can cross. Nil stays nil. Functions, channels, other interfaces,
// addresses, locks, contexts and structs with unexported fields cannot cross. A field tagged
// `wire:"-"` stays at home.
//
// A file arrives as another descriptor of the same open file, under its name. The sender keeps its
// own descriptor, and the receiver closes the new one. The process that made the domain keeps a
// descriptor while the file is under way. It closes this one within a second if no process receives
// the file. A connection or a listener of package net travels as the file that its method File
// returns, and net.FileConn and net.FileListener make one of it again.
//
// # What is lost
//
// Pointers are trees: two pointers to one value arrive as two values, unless the type was given to
// [CustomOnce]. A cycle is [ErrTooDeep]. A time keeps its instant, not its location. An error keeps
// its text, the sentinels that [RegisterError] knows, and its causes of registered types.
//
// # The trap
//
// A struct is written as the list of its fields, without names. So both processes must have been
// built from the same declaration: workers started by package shoal are the same executable. For
// other peers write a type with MarshalBinary, or a map.
//
// Blocks are counted. An [Encoder] takes no reference of a block, so hold the block until Done. A
// [Decoder] takes one reference for each use, and the value's decoder releases it.
package codec
