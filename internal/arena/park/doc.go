// Package park makes goroutines wait for conditions on the shared memory of a domain, and wakes
// them. A waiter spins, then naps with its thread, then parks its goroutine; see [Queue].
//
// A condition is any function of shared words. It has a bitmap of participants in shared memory,
// and the participant that makes the condition true wakes those with a bit; see [Lot].
// docs/memory.md specifies the protocol.
package park
