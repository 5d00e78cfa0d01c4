package arena_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// Each counter in shared memory begins anew after its last value, and nobody notices. The tests set
// the counters a few steps before that, as a domain has them that has run for long.

func TestWrap_LapsOfARing(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		for _, capacity := range []int{1, 2, 8} {
			t.Run(fmt.Sprint(capacity), func(t *testing.T) {
				ctx, a, b := testutil.Context(t), f.first, f.join()
				r, s, v := newRing(t, a, capacity)
				arena.AgeRing(r, 3)
				other := open(t, b, r.Handle(), s, v)
				const n = 60
				var senders sync.WaitGroup
				senders.Go(func() {
					for i := range uint64(n) {
						h := alloc(t, a, 64, "wrap")
						if i%4 != 3 {
							testutil.NoError(t, a.Release(h))
							testutil.NoError(t, r.Put(ctx, binary.LittleEndian.AppendUint64(nil, i), nil, true))
							continue
						}
						b := binary.LittleEndian.AppendUint64(nil, i)
						testutil.NoError(t, r.Put(ctx, b, []arena.Handle{h}, true))
					}
				})
				for i := range uint64(n) {
					var m arena.Message
					testutil.NoError(t, other.Get(ctx, &m))
					if got := binary.LittleEndian.Uint64(m.Body); got != i {
						t.Fatalf("message %d came as number %d", got, i)
					}
					m.Discard()
				}
				senders.Wait()
				if err := other.TryGet(new(arena.Message)); !errors.Is(err, arena.ErrEmpty) || !other.Empty() {
					t.Errorf("a get from an empty ring: %v", err)
				}
				arena.AgeRing(r, 2)
				batches(t, r, other)
				r.Close()
				testutil.NoError(t, errors.Join(a.Release(s), a.Release(v), a.Release(r.Handle())))
				testutil.NoError(t, b.Close())
			})
		}
		reap(t, f.first)
		wantRest(t, f.first, 0)
	})
}

// batches sends some, each as many messages as the ring has slots.
func batches(t *testing.T, from, to *arena.Ring) {
	for round := range 8 {
		var out, in arena.Batch
		for i := range from.Cap() {
			out.Body = append(out.Body, byte(round), byte(i))
			out.Ends = append(out.Ends, len(out.Body))
		}
		for put := 0; put < from.Cap(); {
			rest := arena.Batch{Body: out.Body, Ends: out.Ends[put:]}
			if put > 0 {
				rest = arena.Batch{Body: out.Body[2*put:]}
				for i := range from.Cap() - put {
					rest.Ends = append(rest.Ends, 2*(i+1))
				}
			}
			n, err := from.TryPutBatch(&rest)
			testutil.NoError(t, err)
			put += n
		}
		for got := 0; got < from.Cap(); {
			n, err := to.TryGetBatch(&in, from.Cap())
			testutil.NoError(t, err)
			if got += n; n == 0 {
				t.Fatalf("round %d: %d of %d messages came", round, got, from.Cap())
			}
		}
		if !bytes.Equal(in.Body, out.Body) {
			t.Fatalf("round %d: %x came as %x", round, out.Body, in.Body)
		}
	}
}

// A reaper makes holes, and gives back slots, on both sides of the wrap.
func TestWrap_LapsWhereProcessesDie(t *testing.T) {
	for _, name := range []string{"put writing", "get reading"} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, 8<<20, func(t *testing.T, f *family) {
				ctx, a := testutil.Context(t), f.first
				r, s, v := newRing(t, a, 1)
				arena.AgeRing(r, 2)
				for range 5 {
					if name == "get reading" {
						testutil.NoError(t, r.Put(ctx, []byte("read by the dead"), nil, true))
					}
					b := f.join()
					testutil.NoError(t, halted(t, name).Do(b, open(t, b, r.Handle(), s, v), alloc(t, b, 64, "x")))
					testutil.NoError(t, b.Abandon())
					reap(t, a)
					var m arena.Message
					for r.TryGet(&m) == nil {
						m.Discard()
					}
					testutil.NoError(t, r.Put(ctx, []byte("goes on"), nil, true))
					testutil.NoError(t, r.Get(ctx, &m))
					m.Discard()
				}
				wantRest(t, a, 3)
			})
		})
	}
}

func TestWrap_GenerationsOfBlocks(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		old := alloc(t, a, 100, "old")
		testutil.NoError(t, a.Release(old))
		a.AgeBlocks()
		seen := make(map[arena.Handle]bool)
		for range 6 {
			h := alloc(t, a, 100, "new")
			if seen[h] {
				t.Fatalf("%v came twice", h)
			}
			seen[h] = true
			testutil.NoError(t, b.Import(h))
			wantMark(t, b, h, "new")
			testutil.NoError(t, errors.Join(a.Release(h), b.Release(h)))
			if !a.Stale(h) || !errors.Is(b.Import(h), arena.ErrStale) {
				t.Fatalf("%v was freed, and is not stale", h)
			}
		}
		wantRest(t, a, 0)
	})
}

func TestWrap_EpochsOfSeats(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a := f.first
		a.AgeSeats()
		m, err := a.NewSync(arena.SyncOptions{Form: arena.FormMutex})
		testutil.NoError(t, err)
		s, err := a.NewSync(arena.SyncOptions{Form: arena.FormSemaphore, Limit: 1})
		testutil.NoError(t, err)
		for range 6 { // each takes the lock and the permit into its grave
			b := f.join()
			lock, permit := view(t, b, m, arena.FormMutex), view(t, b, s, arena.FormSemaphore)
			testutil.NoError(t, errors.Join(arena.Mutex{Sync: lock}.TryLock(),
				arena.Semaphore{Sync: permit}.Acquire(testutil.Context(t))))
			testutil.NoError(t, b.Abandon())
			reap(t, a)
			if err := (arena.Mutex{Sync: m}).TryLock(); !errors.Is(err, arena.ErrOwnerDied) {
				t.Fatalf("the holder is dead, and a lock returns %v", err)
			}
			testutil.NoError(t, errors.Join(arena.Mutex{Sync: m}.MarkConsistent(), arena.Mutex{Sync: m}.Unlock()))
			testutil.NoError(t, errors.Join(arena.Semaphore{Sync: s}.Acquire(testutil.Context(t)),
				arena.Semaphore{Sync: s}.Release()))
		}
		m.Close()
		s.Close()
		testutil.NoError(t, errors.Join(a.Release(m.Handle()), a.Release(s.Handle())))
		wantRest(t, a, 0)
	})
}

func TestWrap_TurnsTicketsAndTimes(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx, a := testutil.Context(t), f.first
		form := func(o arena.SyncOptions) *arena.Sync {
			s, err := a.NewSync(o)
			testutil.NoError(t, err)
			s.Age()
			t.Cleanup(func() { s.Close(); testutil.NoError(t, a.Release(s.Handle())) })
			return s
		}
		turns := arena.Barrier{Sync: form(arena.SyncOptions{Form: arena.FormBarrier, Limit: 2})}
		for range 6 {
			both(t, func() error { _, err := turns.Wait(ctx, nil); return err })
		}
		event := arena.Event{Sync: form(arena.SyncOptions{Form: arena.FormEvent})}
		for range 6 {
			waits := make(chan error, 1)
			go func() { waits <- event.Wait(ctx) }()
			event.Set()
			testutil.NoError(t, <-waits)
			event.Clear()
		}
		m := arena.Mutex{Sync: form(arena.SyncOptions{Form: arena.FormMutex})}
		cond := arena.Cond{Sync: form(arena.SyncOptions{Form: arena.FormCond})}
		for range 6 {
			waits := make(chan error, 1)
			testutil.NoError(t, m.Lock(ctx))
			go func() {
				err := m.Lock(ctx)
				if err == nil {
					_, err = cond.Wait(ctx, m)
				}
				waits <- errors.Join(err, m.Unlock())
			}()
			testutil.NoError(t, m.Unlock())
			testutil.Eventually(t, func() bool { return cond.Waiting() == 1 }, "nobody waits")
			if n := cond.Notify(1); n != 1 {
				t.Errorf("%d were notified", n)
			}
			testutil.NoError(t, <-waits)
		}
	})
}

// both calls f on two goroutines.
func both(t *testing.T, f func() error) {
	t.Helper()
	other := make(chan error, 1)
	go func() { other <- f() }()
	testutil.NoError(t, errors.Join(f(), <-other))
}

// Sweeps have numbers in the marks of free blocks, and lists have tags.
func TestWrap_SweepsAndTags(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a := f.first
		a.AgeLists()
		for range 8 {
			var all []arena.Handle
			for range 20 {
				all = append(all, alloc(t, a, 5000, "x"))
			}
			for _, h := range all {
				testutil.NoError(t, a.Release(h))
			}
			a.LoseHints()
			h := alloc(t, a, 5000, "after the sweep")
			testutil.NoError(t, a.Release(h))
		}
		wantRest(t, a, 0)
		if n := a.Stats().Idle; n > 40 {
			t.Errorf("%d blocks are idle: a sweep has lost some", n)
		}
	})
}
