package tensor

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
)

// block returns a block, of which the test has a reference.
func block(t *testing.T) (*arena.Domain, arena.Handle) {
	t.Helper()
	d := inDomain(t, 1<<20)
	h, err := d.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Release(h); err != nil {
			t.Error(err)
		}
	})
	return d, h
}

// arrive returns the storage of a block that arrives once more, at any goroutine.
func arrive(d *arena.Domain, h arena.Handle) *Storage {
	if err := d.Retain(h); err != nil {
		panic(err)
	}
	s, err := adoptBlock(d, h)
	if err != nil {
		panic(err)
	}
	return s
}

// A goroutine that found a lease and then stood still, while the storage began another generation
// with the same block, does not take the storage: another one may have been put for the block
// meanwhile.
func TestLease_OpensOnlyInItsPlace(t *testing.T) {
	d, h := block(t)
	s := arrive(d, h)
	defer s.release()
	if err := d.Retain(h); err != nil {
		t.Fatal(err)
	}
	b, err := d.Bytes(h)
	if err != nil {
		t.Fatal(err)
	}
	late := newStorage()
	late.setBlock(d, h, b)
	late.addFirstView()
	defer late.release()
	before := late.uses.Load()
	if got := late.own.open(known.tableOf(d).entryOf(h)); got != nil || late.uses.Load() != before {
		t.Errorf("opened %p; its life went from %#x to %#x", got, before, late.uses.Load())
	}
}

// A block that arrives while its storage's generation ends waits until the storage is not found any
// more: the storage could have the block again by the time that another one takes its place.
func TestAdopt_WaitsForALifeThatEnds(t *testing.T) {
	d, h := block(t)
	s := arrive(d, h)
	at, l := known.tableOf(d).entryOf(h), s.own
	s.uses.Store(1 << generationBits) // as releaseOf does, before it drops the lease
	arrived := make(chan *Storage)
	go func() { arrived <- arrive(d, h) }()
	time.Sleep(10 * time.Millisecond)
	if at.Load() != l {
		t.Error("another storage took the place of one whose life ends")
	}
	if err := l.releaseMemory(); err != nil {
		t.Error(err)
	}
	if fresh := <-arrived; fresh == s || at.Load() != fresh.own {
		t.Errorf("%p has the block, and %p is found", fresh, at.Load())
	} else {
		fresh.release()
	}
}

// A block that arrives at several goroutines, while others close the tensors that had it, has one
// storage at any time: views of one block are views of one storage.
func TestAdopt_ABlockHasOneStorage(t *testing.T) {
	d, h := block(t)
	const receivers, times = 4, 100_000
	var (
		mu   sync.Mutex
		held [receivers]*Storage
		wait sync.WaitGroup
	)
	for me := range receivers {
		wait.Go(func() {
			for range times {
				s := arrive(d, h)
				mu.Lock()
				for _, other := range held {
					if other != nil && other != s {
						t.Errorf("a block has two storages, %p and %p", other, s)
					}
				}
				held[me] = s
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				held[me] = nil
				mu.Unlock()
				if err := s.release(); err != nil {
					t.Error(err)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	wait.Wait()
}
