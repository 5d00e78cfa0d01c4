package tensor_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

const earlyBytes = 1 << 18

// shareOften makes d the domain, and shares tensors until others of their size start in it.
func shareOften(t *testing.T, d *arena.Domain) {
	t.Helper()
	for range 3 {
		x := tensor.Empty(tensor.Uint8, earlyBytes).Fill(1)
		testutil.NoError(t, x.Share())
		testutil.NoError(t, x.Close())
	}
}

// startsShared reports whether a new tensor of n bytes is in d.
func startsShared(t *testing.T, d *arena.Domain, n int) bool {
	t.Helper()
	before := d.Stats().Blocks
	x := tensor.Empty(tensor.Uint8, n)
	defer x.Close()
	if x.IsShared() {
		t.Errorf("a tensor of %d bytes is shared before Share", n)
	}
	return d.Stats().Blocks > before
}

func TestEmpty_StartsInSharedMemoryIfTensorsOfItsSizeAreShared(t *testing.T) {
	d := local(t)
	if startsShared(t, d, earlyBytes) {
		t.Error("the first tensor starts in shared memory")
	}
	shareOften(t, d)
	if startsShared(t, d, 2*earlyBytes) {
		t.Error("a tensor of another size starts in shared memory")
	}
	copied := d.Stats().Copied
	for _, make := range []func() *tensor.Tensor{
		func() *tensor.Tensor { return tensor.Empty(tensor.Uint8, earlyBytes).Fill(7) },
		func() *tensor.Tensor { return tensor.New(tensor.Uint8, earlyBytes).Fill(7) },
	} {
		x := make()
		at := unsafe.SliceData(tensor.Data[uint8](x))
		testutil.NoError(t, x.Share())
		if !x.IsShared() || unsafe.SliceData(tensor.Data[uint8](x)) != at || d.Stats().Copied != copied {
			t.Errorf("Share moved the tensor; %d bytes were copied", d.Stats().Copied-copied)
		}
		y, err := cross(t, d, x)
		testutil.NoError(t, err)
		if y.Sum() != 7*earlyBytes {
			t.Errorf("the sum of the received tensor is %v", y.Sum())
		}
		testutil.NoError(t, x.Close())
		testutil.NoError(t, y.Close())
	}
}

// A block that was in use before is cleared for New.
func TestNew_ClearsMemoryThatStartsShared(t *testing.T) {
	d := local(t)
	shareOften(t, d)
	for range 3 {
		x := tensor.New(tensor.Uint8, earlyBytes)
		if x.Sum() != 0 {
			t.Fatalf("the sum of zeros is %v", x.Sum())
		}
		testutil.NoError(t, x.Fill(3).Close())
	}
}

func TestEmpty_StartsOnTheHeapAgain(t *testing.T) {
	d := local(t)
	shareOften(t, d)
	tries := 0
	for ; startsShared(t, d, earlyBytes); tries++ {
		if tries > 100 {
			t.Fatal("100 tensors that were not shared started in shared memory")
		}
	}
	if tries == 0 {
		t.Error("no tensor started in shared memory")
	}
}

// A domain that is more than half full is left to tensors that must be in it.
func TestEmpty_StartsOnTheHeapIfMemoryIsShort(t *testing.T) {
	d := local(t)
	shareOften(t, d)
	full := testutil.Value(tensor.NewShared(tensor.Uint8, int(d.Stats().Limit/2)))(t)
	defer full.Close()
	if startsShared(t, d, earlyBytes) {
		t.Error("a tensor starts in a domain that is half full")
	}
}

// A closed domain, and a domain in which no tensor was shared, get no tensors.
func TestEmpty_StartsOnTheHeapInAnotherDomain(t *testing.T) {
	t.Run("first", func(t *testing.T) { shareOften(t, local(t)) })
	d := local(t)
	if startsShared(t, d, earlyBytes) {
		t.Error("a tensor starts in a domain in which none was shared")
	}
}

// A tensor that starts in shared memory and is dropped leaves no block behind.
func TestEmpty_DroppedTensorReturnsItsBlock(t *testing.T) {
	d := local(t)
	shareOften(t, d)
	before := d.Stats().Blocks
	x := tensor.Empty(tensor.Uint8, earlyBytes)
	if d.Stats().Blocks == before {
		t.Fatal("the tensor starts on the heap")
	}
	runtime.KeepAlive(x)
	x = nil
	collect(t, func() bool { return d.Stats().Blocks == before })
}

// What starts in shared memory is not counted as memory of the heap, and what was shared is counted
// until it is collected.
func TestMemoryStats_CountsOnlyTheHeap(t *testing.T) {
	d := local(t)
	testutil.NoError(t, tensor.EmptyCache())
	allocated := func() int { return tensor.MemoryStats()["allocated_bytes.current"] }
	before := allocated()
	shareOften(t, d)
	x := tensor.Empty(tensor.Uint8, earlyBytes)
	if n := allocated() - before; n > 0 {
		t.Errorf("%d bytes of the heap are allocated, want none", n)
	}
	testutil.NoError(t, x.Close())
	testutil.EventuallyNoError(t, func() error {
		testutil.NoError(t, tensor.EmptyCache())
		s := tensor.MemoryStats()
		n, reserved := s["allocated_bytes.current"], s["reserved_bytes.current"]
		if n < 0 || n > before || reserved != n { // tensors of earlier tests may have been collected
			return fmt.Errorf("got %v, want at most %d bytes allocated, and none in the cache", s, before)
		}
		return nil
	})
}

// Heap memory that was shared is used again once the tensor is closed, and not before: a slice may
// refer to it.
func TestShare_ReturnsTheHeapMemoryToTheCache(t *testing.T) {
	local(t)
	testutil.NoError(t, tensor.EmptyCache())
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection would take the memory
	const n = 20 << 10                               // no tensor of this size starts in shared memory
	x := tensor.Empty(tensor.Uint8, n)
	old := unsafe.SliceData(tensor.Data[uint8](x))
	testutil.NoError(t, x.Share())
	y := tensor.Empty(tensor.Uint8, n)
	if unsafe.SliceData(tensor.Data[uint8](y)) == old {
		t.Error("memory of an open tensor is used again")
	}
	testutil.NoError(t, x.Close())
	z := tensor.Empty(tensor.Uint8, n)
	if unsafe.SliceData(tensor.Data[uint8](z)) != old {
		t.Error("memory of a closed tensor is not used again")
	}
	testutil.NoError(t, y.Close())
	testutil.NoError(t, z.Close())
}
