package shm_test

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/tensor"
)

// A program with a budget of its own learns what it asked for, and how much there was.
func Example() {
	if err := shoal.SetMemory(shm.Options{Budget: 8 << 20}); err != nil {
		fmt.Println(err)
		return
	}
	_, err := tensor.NewShared(tensor.Float32, 4<<20)
	full, ok := errors.AsType[*shm.SpaceError](err)
	fmt.Println(ok, errors.Is(err, shm.ErrNoSpace), full.Want, full.Limit)

	x, err := tensor.NewShared(tensor.Float32, 1<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer x.Close()
	fmt.Println(shoal.MemoryStats().Blocks, "block of", shoal.MemoryStats().Bytes, "bytes")
	// The memory is made once: what was chosen stays.
	fmt.Println(shoal.SetMemory(shm.Options{}))
	// Output:
	// true true 16777216 8388608
	// 1 block of 4194304 bytes
	// shoal: this process has shared memory already
}

// What a PeerError says of a process that died while it held a lock.
func ExamplePeerError() {
	err := fmt.Errorf("lock the counter: %w", &shm.PeerError{PID: 4711, Cause: shm.ErrOwnerDied})
	if peer, ok := errors.AsType[*shm.PeerError](err); ok {
		fmt.Println(peer.PID, errors.Is(err, shm.ErrOwnerDied))
	}
	// Output: 4711 true
}
