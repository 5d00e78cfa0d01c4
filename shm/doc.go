// Package shm has the figures, the limits and the errors of shared memory.
//
// All processes of a program share one domain, an arena of blocks. The domain frees a block when
// its last holder lets go: a process or a message. A process that is killed with SIGKILL, between
// any two instructions, lets go as well. Tensors, queues and locks lie in blocks, so a program
// seldom meets the memory itself. It meets these types:
//
//   - [SpaceError], wrapping [ErrNoSpace]: the domain's budget is used up; its fields say by which
//     processes and queues;
//   - [PeerError]: another process of the domain died, and what that means here;
//   - [Options], for shoal.SetMemory: a budget other than what the machine has free;
//   - [Stats] and [Report], from shoal.MemoryStats and shoal.Inspect, or from the command
//     `shoal inspect`.
//
// The trap: a slice over shared memory, such as tensor.Data returns, is borrowed. Once this process
// has closed its last tensor over a block, another process may be given the memory.
//
// docs/memory.md has the layout and the protocol.
package shm
