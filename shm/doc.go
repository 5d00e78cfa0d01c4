// Package shm contains the options, statistics and errors of shared memory.
//
//	// Before the program shares memory:
//	if err := shoal.SetMemory(shm.Options{Budget: 1 << 30}); err != nil {
//		return err
//	}
//	t, err := tensor.NewShared(tensor.Float32, 1_000_000_000)
//	var full *shm.SpaceError
//	if errors.As(err, &full) {
//		fmt.Println("wanted", full.Want, "bytes, held by", full.Holders)
//	}
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	fmt.Println(shoal.MemoryStats().Bytes)
//
// Start with [shoal.SetMemory], [shoal.MemoryStats] and [shoal.Inspect].
//
// All processes of a program share one domain, an arena of reference-counted blocks. The domain
// frees a block when its last holder, a process or a message, releases it. The references of a
// process that is killed with SIGKILL, between any two instructions, are released too. Tensors,
// queues and locks are stored in blocks, so a program seldom deals with the memory itself. It may
// encounter these types:
//
//   - [SpaceError], wrapping [ErrNoSpace]: the domain's budget is exhausted; its fields list the
//     processes and queues that hold the memory;
//   - [PeerError]: another process of the domain died, and the effect on the caller;
//   - [Options], for shoal.SetMemory: a budget other than the machine's free memory;
//   - [Stats] and [Report], returned by shoal.MemoryStats and shoal.Inspect, and printed by the
//     command `shoal inspect`.
//
// The trap: a slice over shared memory, such as the result of tensor.Data, is borrowed. It must not
// be used after this process has closed its last tensor over the block, because the memory may then
// belong to another process.
//
// docs/memory.md describes the layout and the protocol.
//
// [shoal.SetMemory]: https://pkg.go.dev/github.com/shoal-mp/shoal#SetMemory
// [shoal.MemoryStats]: https://pkg.go.dev/github.com/shoal-mp/shoal#MemoryStats
// [shoal.Inspect]: https://pkg.go.dev/github.com/shoal-mp/shoal#Inspect
package shm
