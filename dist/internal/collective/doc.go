// Package collective is the agreement between package dist and the engines by which ranks on many
// machines reach each other. An engine is a library that is trusted to do it, such as an MPI. It
// moves bytes and reduces numbers. Package dist does all the rest: it checks tensors, agrees on
// calls, ends them by deadlines, and makes values of bytes.
//
//	func init() { collective.Register(collective.MPI, open) }
//
// The trap: a call blocks until all ranks have made it, and nothing can end it. Package dist makes
// each call on a goroutine of its own, and leaves that goroutine alone if the call does not end.
package collective
