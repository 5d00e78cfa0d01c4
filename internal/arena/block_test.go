package arena_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestBlock_IsFreeWhenItsLastReferenceGoes(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d := f.first
		h := alloc(t, d, 5000, "x")
		testutil.NoError(t, d.Retain(h))
		testutil.NoError(t, d.Release(h))
		wantMark(t, d, h, "x")
		testutil.NoError(t, d.Release(h))
		if err := d.Release(h); !errors.Is(err, arena.ErrStale) {
			t.Errorf("second release: %v, want ErrStale", err)
		}
		if _, err := d.Bytes(h); !errors.Is(err, arena.ErrStale) {
			t.Errorf("bytes of a free block: %v, want ErrStale", err)
		}
		if err := d.Retain(h); !errors.Is(err, arena.ErrStale) {
			t.Errorf("retain of a free block: %v, want ErrStale", err)
		}
		if err := d.Import(h); !errors.Is(err, arena.ErrStale) {
			t.Errorf("import of a free block: %v, want ErrStale", err)
		}
		wantRest(t, d, 0)
	})
}

func TestHandle_StaysStaleWhenItsBlockIsUsedAgain(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d := f.first
		old := alloc(t, d, 5000, "old")
		testutil.NoError(t, d.Release(old))
		again := alloc(t, d, 5000, "new")
		if arena.Index(old) != arena.Index(again) {
			t.Fatalf("%v is not used again first, but %v", old, again)
		}
		if err := d.Import(old); !errors.Is(err, arena.ErrStale) {
			t.Errorf("import: %v, want ErrStale", err)
		}
		if err := d.Release(old); !errors.Is(err, arena.ErrStale) {
			t.Errorf("release: %v, want ErrStale", err)
		}
		wantMark(t, d, again, "new")
	})
}

func TestBlock_OutlivesItsMakerOnceImported(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		h := alloc(t, a, 1<<20, "shared")
		if _, err := b.Bytes(h); !errors.Is(err, arena.ErrClosed) {
			t.Errorf("bytes of a block that somebody else holds: %v, want ErrClosed", err)
		}
		if err := b.Release(h); !errors.Is(err, arena.ErrClosed) {
			t.Errorf("release of a block that somebody else holds: %v, want ErrClosed", err)
		}
		testutil.NoError(t, b.Import(h))
		testutil.NoError(t, a.Close())
		wantMark(t, b, h, "shared")
		testutil.NoError(t, b.Release(h))
		wantRest(t, b, 0)
	})
}

func TestHandle_MadeUpIsRefused(t *testing.T) {
	d := newDomain(t, 8<<20)
	held := alloc(t, d, 64, "x")
	for _, h := range []arena.Handle{0, arena.HandleAt(1<<22-1, 0), arena.HandleAt(0, 7), held | 1<<22,
		held | 1<<31, held ^ 1<<32} {
		if err := d.Import(h); !errors.Is(err, arena.ErrStale) {
			t.Errorf("import of %#x: %v, want ErrStale", uint64(h), err)
		}
		if _, err := d.Bytes(h); !errors.Is(err, arena.ErrStale) {
			t.Errorf("bytes of %#x: %v, want ErrStale", uint64(h), err)
		}
	}
	testutil.NoError(t, d.Audit())
}

func TestBlock_MayHaveNoBytes(t *testing.T) {
	d := newDomain(t, 8<<20)
	h, err := d.Alloc(0)
	testutil.NoError(t, err)
	if p, err := d.Bytes(h); err != nil || len(p) != 0 {
		t.Errorf("%d bytes, %v", len(p), err)
	}
	if n := d.Stats().Committed; n != 0 {
		t.Errorf("%d bytes committed for nothing", n)
	}
	testutil.NoError(t, d.Release(h))
	wantRest(t, d, 0)
}

func TestBlock_LargerThanTheDomainIsRefused(t *testing.T) {
	d := newDomain(t, 1<<20) // 16 MiB of addresses
	for _, size := range []int{17 << 20, 1 << 50, -1} {
		if _, err := d.Alloc(size); !errors.Is(err, arena.ErrTooLarge) {
			t.Errorf("alloc of %d bytes: %v, want ErrTooLarge", size, err)
		}
	}
	if _, err := d.Alloc(17 << 20); !strings.Contains(fmt.Sprint(err), "17825792 bytes, want at most 16777216: ") {
		t.Errorf("%v does not say how large, and what there is", err)
	}
}

func TestDomain_RefusesUseAfterClose(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d := f.join()
		h := alloc(t, d, 64, "x")
		r, _, _ := newRing(t, d, 4)
		var m arena.Message
		testutil.NoError(t, r.Put(testutil.Context(t), []byte("m"), nil, false))
		testutil.NoError(t, r.Get(testutil.Context(t), &m))
		testutil.NoError(t, d.Close())
		testutil.NoError(t, d.Close()) // idempotent
		_, alloc := d.Alloc(64)
		_, wait := d.AllocWait(testutil.Context(t), 64)
		for name, err := range map[string]error{
			"alloc": alloc, "alloc wait": wait, "release": d.Release(h), "retain": d.Retain(h), "import": d.Import(h),
			"put": r.TryPut(nil, nil, false), "get": r.TryGet(&m),
			"blocking put": r.Put(testutil.Context(t), nil, nil, false), "blocking get": r.Get(testutil.Context(t), &m),
		} {
			if !errors.Is(err, arena.ErrClosed) {
				t.Errorf("%s: %v, want ErrClosed", name, err)
			}
		}
		wantRest(t, f.first, 0)
	})
}

func TestBlock_SmallOnesShareSlabs(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d := f.first
		var all []arena.Handle
		for range 4096 {
			all = append(all, alloc(t, d, 64, "x"))
		}
		if s := d.Stats(); s.Committed != 4096*64 {
			t.Errorf("4096 blocks of 64 bytes take %d bytes", s.Committed)
		}
		seen := make(map[*byte]bool)
		for _, h := range all {
			p, err := d.Bytes(h)
			testutil.NoError(t, err)
			if len(p) != 64 || seen[&p[0]] {
				t.Fatalf("%v has %d bytes, used twice: %t", h, len(p), seen[&p[0]])
			}
			seen[&p[0]] = true
			testutil.NoError(t, d.Release(h))
		}
		wantRest(t, d, 0)
		for range 4096 {
			alloc(t, d, 64, "x")
		}
		if s := d.Stats(); s.Committed != 4096*64 {
			t.Errorf("the same blocks once more take %d bytes", s.Committed)
		}
	})
}

func TestBlock_IsSharedByGoroutines(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d := f.first
		h := alloc(t, d, 64, "shared")
		r, _, _ := newRing(t, d, 64)
		ctx := testutil.Context(t)
		var g sync.WaitGroup
		for range 64 {
			g.Go(func() {
				for range 100 {
					var m arena.Message
					err := errors.Join(d.Retain(h), r.Put(ctx, nil, []arena.Handle{h}, true), r.Get(ctx, &m),
						d.Retain(h), d.Release(h))
					if err != nil {
						t.Error(err)
						return
					}
					m.Discard()
				}
			})
		}
		g.Wait()
		wantMark(t, d, h, "shared")
		wantRest(t, d, 4)
	})
}

func TestBlock_IsAllocatedAndFreedByManyAtOnce(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		var g sync.WaitGroup
		for range 4 {
			d := f.join()
			g.Go(func() {
				for i := range 2000 {
					h, err := d.Alloc(i % 20_000)
					if err != nil {
						t.Error(err)
						return
					}
					if p, _ := d.Bytes(h); len(p) > 0 {
						p[0] = byte(i)
					}
					if err := d.Release(h); err != nil {
						t.Error(err)
					}
				}
			})
		}
		g.Wait()
		wantRest(t, f.first, 0)
	})
}

// An operation that finds all lanes taken by Close is told so.
func TestDomain_ClosedKeepsNobodyWaiting(t *testing.T) {
	for range 200 {
		d, err := arena.NewLocal(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		var g sync.WaitGroup
		for range 4 {
			g.Go(func() {
				for {
					h, err := d.Alloc(64)
					if err == nil {
						err = d.Release(h)
					}
					if errors.Is(err, arena.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		g.Wait()
	}
}

// More operations than there are lanes wait: none of them is forgotten when lanes are free again.
// However many wait for somebody's operation on a block, they keep no lanes: the others go on.
func TestLane_WaitersForAStampKeepNone(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		r, s, v := newRing(t, a, 128)
		other := open(t, b, r.Handle(), s, v)
		h := alloc(t, a, 64, "x")
		testutil.NoError(t, b.Import(h))
		end, err := a.StampPut(h)
		testutil.NoError(t, err)
		var g sync.WaitGroup
		for range 100 {
			g.Go(func() {
				if err := other.Put(testutil.Context(t), nil, []arena.Handle{h}, false); err != nil {
					t.Error(err)
				}
			})
		}
		testutil.Eventually(t, func() bool { return b.Parked() == 100 }, "not all wait")
		testutil.NoError(t, b.Release(alloc(t, b, 64, "y")))
		end()
		g.Wait()
		if n := r.Len(); n != 100 {
			t.Errorf("%d messages, want 100", n)
		}
		testutil.NoError(t, errors.Join(a.Release(h), b.Release(h)))
	})
}
