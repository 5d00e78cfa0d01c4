// Package arena manages memory that several processes map at the same time. A domain is one arena,
// and its memory is divided into blocks. A block is freed when no process and no message holds it
// any more, even if a holder was killed with SIGKILL between any two instructions.
//
// A [Domain] is the arena of a family of processes. [Domain.Alloc] returns the [Handle] of a block,
// which is valid in every participant. A [Ring] carries messages with references to blocks between
// participants:
//
//	d, err := arena.Default()
//	if err != nil {
//		return err
//	}
//	h, err := d.Alloc(1 << 20) // held once by this process
//	if err != nil {
//		return err // *shm.SpaceError has the numbers
//	}
//	p, _ := d.Bytes(h)
//	copy(p, data)
//	err = ring.Put(ctx, nil, []arena.Handle{h}, true) // the message holds it now
//
// The slice returned by [Domain.Bytes] is borrowed. It must not be used after this process has
// released its last reference to the block: the memory may then belong to another process, and the
// slice still points to it.
//
// docs/memory.md specifies the layout and the protocol, docs/model.md the properties proved about
// them.
package arena
