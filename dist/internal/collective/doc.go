// Package collective defines the interface between package dist and its engines. An engine is a
// library, such as an MPI, that connects ranks on several machines. It moves bytes and reduces
// numbers. Package dist does everything else: it checks tensors, compares calls between ranks,
// enforces deadlines and encodes values.
//
//	func init() { collective.Register(collective.MPI, open) }
//
// The trap: a call blocks until all ranks have made it, and cannot be canceled. Package dist
// therefore makes each call on a goroutine of its own, which it abandons if the call does not
// complete in time.
package collective
