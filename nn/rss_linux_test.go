//go:build !race

package nn_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// resident returns how many bytes of this process are in memory, after what is free was given back.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	testutil.NoError(t, err)
	var size, pages int
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// What a step computes takes 0.7 MB, so a step that kept it would be seen, and so would one that
// kept a gradient.
func TestLayer_TrainsFiftyEpochsInOneMemory(t *testing.T) {
	const epochs, batches, room = 50, 8, 16 << 20
	for name, make := range optimizers {
		step := lap(NewMNISTNet(tensor.NewGenerator(1)), make)
		train := func(epochs int) {
			for range epochs * batches {
				step()
			}
		}
		train(3)
		before := resident(t)
		train(epochs)
		if grown := resident(t) - before; grown > room {
			t.Errorf("%d epochs with %s: memory grew by %d bytes from %d", epochs, name, grown, before)
		}
	}
}
