// Package arena is memory that several processes map at once: blocks in one arena. A block is freed
// when no process and no message holds it any more, also where a holder was killed with SIGKILL
// between any two instructions.
//
// A [Domain] is the arena of a family of processes. [Domain.Alloc] returns the [Handle] of a block,
// which any participant understands; a [Ring] carries messages with references to blocks between
// them:
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
// The trap: the slice that Bytes returns is borrowed. Once this process has released its last
// reference, the memory may belong to another process, and the slice still points at it.
//
// docs/memory.md has the layout and the protocol, docs/model.md what was proved about it.
package arena
