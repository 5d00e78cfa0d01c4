package arena_test

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A message carries a reference to a block. Sender and receiver may be processes that have the
// domain in common.
func Example() {
	d, err := arena.New(arena.Options{})
	if err != nil {
		panic(err)
	}
	defer d.Close()
	ring, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: 4})
	if err != nil {
		panic(err)
	}
	block, err := d.Alloc(4096) // held once, by this process
	if err != nil {
		panic(err)
	}
	b, err := d.Bytes(block)
	if err != nil {
		panic(err)
	}
	copy(b, "in shared memory")
	// the message holds it now
	if err := ring.Put(context.Background(), []byte("a block"), []arena.Handle{block}, true); err != nil {
		panic(err)
	}
	var m arena.Message
	if err := ring.Get(context.Background(), &m); err != nil { // and now this process again
		panic(err)
	}
	b, err = d.Bytes(m.Blocks[0])
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s\n", m.Body, b[:16])
	m.Done() // with its body, not with its blocks
	for _, h := range []arena.Handle{m.Blocks[0], senders, receivers, ring.Handle()} {
		if err := d.Release(h); err != nil {
			panic(err)
		}
	}
	fmt.Println(d.Stats().Blocks, "blocks are left")
	// Output:
	// a block: in shared memory
	// 0 blocks are left
}
