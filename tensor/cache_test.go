package tensor

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal/test/testutil"
)

// withCache gives a test a cache of its own.
func withCache(t *testing.T, limit int) {
	t.Helper()
	emptied(t)
	before := memories.limit
	memories.limit = limit
	t.Cleanup(func() {
		emptied(t)
		memories.limit = before
	})
}

func emptied(t *testing.T) {
	t.Helper()
	if err := EmptyCache(); err != nil {
		t.Fatal(err)
	}
}

func kept() int {
	s := MemoryStats()
	return s["reserved_bytes.current"] - s["allocated_bytes.current"]
}

func TestMemoryCache_GivesAClosedTensorsMemoryToTheNext(t *testing.T) {
	withCache(t, 1<<30)
	for _, n := range []int{1100, 5000, 32 << 10, 1 << 20, 5 << 20} {
		x := Full(Uint8, 7, n)
		at := unsafe.SliceData(Data[uint8](x))
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		y := New(Uint8, n-1) // of the same class
		if unsafe.SliceData(Data[uint8](y)) != at {
			t.Errorf("%d bytes: the memory is another one", n)
		}
		if y.Numel() != n-1 || Amax(y).Item() != 0 || cap(Data[uint8](y)) != n-1 {
			t.Errorf("%d bytes: New is not %d zeros", n, n-1)
		}
		if y.Version() != 0 {
			t.Errorf("%d bytes: version %d", n, y.Version())
		}
		y.Close()
	}
}

func TestMemoryCache_LeavesMemoryThatAViewHas(t *testing.T) {
	withCache(t, 1<<30)
	x := Full(Float32, 7, 1<<12)
	v := x.Narrow(0, 0, 8)
	x.Close()
	y := Full(Float32, 1, 1<<12)
	if v.SameStorage(y) || At[float32](v, 0) != 7 {
		t.Errorf("the view has %v", v)
	}
	v.Close()
	v.Close() // counts once
	a, b := Empty(Float32, 1<<12), Empty(Float32, 1<<12)
	if a.SameStorage(b) {
		t.Error("two tensors got one memory")
	}
}

// A tensor that is closed is told from the next one with its memory.
func TestMemoryCache_TellsAClosedTensor(t *testing.T) {
	withCache(t, 1<<30)
	x := New(Float32, 1<<12)
	underWay := x.borrowView(x.Shape(), x.Strides(), 0)
	s := x.store()
	x.Close()
	y := New(Float32, 1<<12)
	if y.store() != s {
		t.Fatal("the storage is another one")
	}
	for name, use := range map[string]func(){
		"closed":    func() { x.Sum() },
		"under way": func() { underWay.Fill(1) },
		"viewed":    func() { underWay.View(-1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a tensor that is %s can be used", name)
				}
			}()
			use()
		}()
	}
	if y.Sum() != 0 {
		t.Error("a closed tensor has changed another one")
	}
}

func TestMemoryCache_LeavesDroppedMemoryThatASliceHas(t *testing.T) {
	withCache(t, 1<<30)
	slices := make([][]float32, 50)
	for i := range slices {
		slices[i] = Data[float32](Full(Float32, float64(i), 1<<14))
		if i%10 == 9 {
			runCollector()
		}
	}
	for range 100 {
		Full(Float32, -1, 1<<14)
	}
	for i, s := range slices {
		if s[0] != float32(i) || s[len(s)-1] != float32(i) {
			t.Fatalf("slice %d has %v", i, s[0])
		}
	}
}

func TestMemoryCache_CountsWhatTensorsHave(t *testing.T) {
	withCache(t, 1<<30)
	allocated := func() int { return MemoryStats()["allocated_bytes.current"] }
	before := allocated()
	var all []*Tensor
	for range 8 {
		all = append(all, Empty(Uint8, 1<<20))
	}
	if n := allocated() - before; n != 8<<20 {
		t.Errorf("%d bytes are allocated", n)
	}
	if n := MemoryStats()["allocated_bytes.peak"]; n < before+8<<20 {
		t.Errorf("at most %d bytes were allocated", n)
	}
	all[0].Close()
	if n := allocated() - before; n != 7<<20 || kept() != 1<<20 {
		t.Errorf("%d bytes are allocated and %d kept", n, kept())
	}
	clear(all)
	testutil.EventuallyNoError(t, func() error {
		if n := allocated() - before; n > 0 {
			runCollector()
			return fmt.Errorf("%d bytes of dropped tensors are allocated", n)
		}
		return nil
	})
}

func TestMemoryCache_LeavesToTheCollectorWhatNobodyWants(t *testing.T) {
	withCache(t, 1<<30)
	New(Uint8, 1<<20).Close()
	if kept() != 1<<20 {
		t.Fatalf("%d bytes are kept", kept())
	}
	testutil.EventuallyNoError(t, func() error {
		if n := kept(); n != 0 {
			runCollector()
			return fmt.Errorf("%d bytes are kept", n)
		}
		return nil
	})
}

func TestMemoryCache_HasALimit(t *testing.T) {
	withCache(t, 4<<20)
	var all []*Tensor
	for range 10 {
		all = append(all, New(Uint8, 1<<20))
	}
	before := MemoryStats()["allocated_bytes.current"]
	for _, x := range all {
		x.Close()
	}
	if kept() != 4<<20 {
		t.Errorf("%d bytes are kept", kept())
	}
	clear(all)
	testutil.EventuallyNoError(t, func() error {
		left := MemoryStats()["allocated_bytes.current"] - (before - 10<<20)
		if n := kept(); left > 0 || n != 0 {
			emptied(t)
			return fmt.Errorf("%d bytes are left of tensors, %d are kept", left, n)
		}
		return nil
	})
}

// Many goroutines make tensors and close or drop them while others empty the cache: none ever sees
// the elements of another.
func TestMemoryCache_IsSharedByGoroutines(t *testing.T) {
	withCache(t, 2<<20)
	var all sync.WaitGroup
	for id := range 8 {
		all.Go(func() {
			for i := range 200 {
				x := Full(Float32, float64(id), 1<<(8+i%9))
				y := x.Narrow(0, 0, 200)
				if i%3 == 0 {
					x.Close()
				}
				runtime.Gosched()
				if y.Sum() != float64(200*id) {
					t.Errorf("goroutine %d has elements of another", id)
				}
				if i%2 == 0 {
					y.Close()
				}
				if id == 0 && i%50 == 0 {
					if err := EmptyCache(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
}
