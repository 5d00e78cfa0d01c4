// Package shm says what users see of shared memory: its figures, its limits and its errors.
//
// All processes of a program share one domain, an arena of blocks. A block is freed when no process
// and no message holds it any more, also when a holder was killed with SIGKILL between any two
// instructions. Tensors, queues and locks lie in blocks, so a program seldom meets the memory
// itself; it meets these:
//
//   - [SpaceError], wrapping [ErrNoSpace]: the domain's budget is used up, and by whom;
//   - [PeerError]: another process of the domain died, and what that means here;
//   - [Options], for shoal.SetMemory: a budget other than what the machine has free;
//   - [Stats] and [Report], from shoal.MemoryStats and shoal.Inspect, or from the command
//     `shoal inspect`.
//
// The trap: a slice over shared memory, such as tensor.Data returns, is borrowed. Once this process
// has closed its last tensor over a block, the memory belongs to somebody else.
//
// docs/memory.md has the layout and the protocol.
package shm
