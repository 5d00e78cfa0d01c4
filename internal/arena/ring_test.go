package arena_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestRing_IsFirstInFirstOut(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		r, s, v := newRing(t, a, 5)
		other := open(t, b, r.Handle(), s, v)
		if r.Cap() != 5 {
			t.Errorf("capacity %d, want 5", r.Cap())
		}
		var m arena.Message
		for lap := range 3 {
			for i := range 5 {
				h := alloc(t, a, 64, fmt.Sprint(lap, i))
				testutil.NoError(t, r.TryPut([]byte{byte(i)}, []arena.Handle{h}, true))
			}
			if err := r.TryPut(nil, nil, false); !errors.Is(err, arena.ErrFull) || r.Len() != 5 {
				t.Errorf("put into %d of 5: %v, want ErrFull", r.Len(), err)
			}
			for i := range 5 {
				testutil.NoError(t, other.TryGet(&m))
				if m.Body[0] != byte(i) {
					t.Fatalf("message %d came as the %dth", m.Body[0], i)
				}
				wantMark(t, b, m.Blocks[0], fmt.Sprint(lap, i))
				m.Discard()
			}
			if err := other.TryGet(&m); !errors.Is(err, arena.ErrEmpty) || r.Len() != 0 {
				t.Errorf("get from %d: %v, want ErrEmpty", r.Len(), err)
			}
		}
		wantRest(t, a, 3)
	})
}

func TestRing_MayHaveCapacityOne(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		r, _, _ := newRing(t, f.first, 1)
		var m arena.Message
		for i := range 100 {
			testutil.NoError(t, r.TryPut([]byte{byte(i)}, nil, false))
			if err := r.TryPut(nil, nil, false); !errors.Is(err, arena.ErrFull) {
				t.Fatalf("second put: %v, want ErrFull", err)
			}
			testutil.NoError(t, r.TryGet(&m))
			if m.Body[0] != byte(i) {
				t.Fatalf("got %d, want %d", m.Body[0], i)
			}
		}
	})
}

func TestRing_EveryMessageArrivesExactlyOnce(t *testing.T) {
	const producers, consumers, each = 4, 3, 1000
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		r, s, v := newRing(t, f.first, 16)
		var put, get sync.WaitGroup
		for p := range producers {
			d := f.join()
			ring := open(t, d, r.Handle(), s, v)
			put.Go(func() {
				for i := range each {
					h := alloc(t, d, 64, "m")
					b, _ := d.Bytes(h)
					binary.LittleEndian.PutUint64(b, uint64(p*each+i))
					if err := ring.Put(ctx, b[:8], []arena.Handle{h}, true); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		var mu sync.Mutex
		seen := make(map[uint64]bool)
		for range consumers {
			d := f.join()
			ring := open(t, d, r.Handle(), s, v)
			get.Go(func() {
				var m arena.Message
				last := make(map[uint64]uint64)
				for {
					if err := ring.Get(ctx, &m); errors.Is(err, arena.ErrFinished) {
						return
					} else if err != nil {
						t.Error(err)
						return
					}
					n := binary.LittleEndian.Uint64(m.Body)
					if b, err := d.Bytes(m.Blocks[0]); err != nil || binary.LittleEndian.Uint64(b) != n {
						t.Errorf("message %d carries another one's block, %v", n, err)
					}
					if before, ok := last[n/each]; ok && before > n {
						t.Errorf("producer %d: %d after %d", n/each, n, before)
					}
					last[n/each] = n
					mu.Lock()
					if seen[n] {
						t.Errorf("message %d came twice", n)
					}
					seen[n] = true
					mu.Unlock()
					m.Discard()
				}
			})
		}
		put.Wait()
		r.Finish()
		get.Wait()
		if len(seen) != producers*each {
			t.Errorf("%d messages arrived, want %d", len(seen), producers*each)
		}
		wantRest(t, f.first, 3)
	})
}

func TestRing_FinishedIsDrainedFirst(t *testing.T) {
	d := newDomain(t, 8<<20)
	r, _, _ := newRing(t, d, 4)
	var m arena.Message
	testutil.NoError(t, r.TryPut([]byte("last"), nil, false))
	r.Finish()
	if err := r.TryPut(nil, nil, false); !errors.Is(err, arena.ErrFinished) {
		t.Errorf("put: %v, want ErrFinished", err)
	}
	testutil.NoError(t, r.TryGet(&m))
	if err := r.TryGet(&m); !errors.Is(err, arena.ErrFinished) {
		t.Errorf("get: %v, want ErrFinished", err)
	}
}

func TestRing_EndsWithItsLastSenderOrReceiver(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		r, s, v := newRing(t, a, 1)
		other := open(t, b, r.Handle(), s, v)
		got := make(chan error)
		go func() { got <- other.Get(ctx, new(arena.Message)) }()
		testutil.NoError(t, b.Release(s))
		testutil.NoError(t, a.Release(s))
		if err := <-got; !errors.Is(err, arena.ErrFinished) {
			t.Errorf("get without senders: %v, want ErrFinished", err)
		}
		testutil.NoError(t, r.TryPut(nil, nil, false)) // the token says who may; the ring still takes it
		go func() { got <- r.Put(ctx, nil, nil, false) }()
		testutil.NoError(t, a.Release(v))
		testutil.NoError(t, b.Release(v))
		if err := <-got; !errors.Is(err, arena.ErrFinished) {
			t.Errorf("put without receivers: %v, want ErrFinished", err)
		}
	})
}

func TestRing_TakesMessagesOfAllSizes(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		r, s, v := newRing(t, a, 4)
		other := open(t, b, r.Handle(), s, v)
		for _, body := range []int{0, 1, arena.SlotBody, arena.SlotBody + 1, 100_000} {
			for _, blocks := range []int{0, 1, arena.SlotBlocks, arena.SlotBlocks + 1, 300} {
				for _, move := range []bool{true, false} {
					sendOne(t, a, b, r, other, body, blocks, move)
				}
			}
		}
		wantRest(t, a, 3)
	})
}

// sendOne sends one message from r in a to other in b and checks it.
func sendOne(t *testing.T, a, b *arena.Domain, r, other *arena.Ring, body, blocks int, move bool) {
	t.Helper()
	want := bytes.Repeat([]byte{byte(body)}, body)
	var hs []arena.Handle
	for i := range blocks {
		hs = append(hs, alloc(t, a, 64, fmt.Sprint(i, ".")))
	}
	testutil.NoError(t, r.TryPut(want, hs, move))
	if !move {
		for _, h := range hs {
			testutil.NoError(t, a.Release(h))
		}
	}
	var m arena.Message
	testutil.NoError(t, other.TryGet(&m))
	if !bytes.Equal(m.Body, want) || len(m.Blocks) != blocks {
		t.Fatalf("got %d bytes and %d blocks, want %d and %d", len(m.Body), len(m.Blocks), body, blocks)
	}
	for i, h := range m.Blocks {
		wantMark(t, b, h, fmt.Sprint(i, "."))
	}
	m.Discard()
}

func TestRing_MessageWithABlockTwicePanics(t *testing.T) {
	d := newDomain(t, 8<<20)
	r, _, _ := newRing(t, d, 4)
	h := alloc(t, d, 64, "x")
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	r.TryPut(nil, []arena.Handle{h, h}, false)
}

func TestRing_GrowsOnDemand(t *testing.T) {
	d := newDomain(t, 16<<20) // of 256 MiB of addresses; the ring's slots would take all of those
	r, _, _, err := d.NewRing(arena.RingOptions{Capacity: 1 << 19, Grow: true})
	testutil.NoError(t, err)
	if n := d.Committed(r.Handle()); n > 1<<20 {
		t.Errorf("an empty ring takes %d bytes", n)
	}
	const n = 5000
	for i := range n {
		testutil.NoError(t, r.TryPut(binary.LittleEndian.AppendUint64(nil, uint64(i)), nil, false))
	}
	if got := d.Committed(r.Handle()); got < n*256 || got > 4*n*256 {
		t.Errorf("%d messages take %d bytes", n, got)
	}
	var m arena.Message
	for i := range n {
		testutil.NoError(t, r.TryGet(&m))
		if binary.LittleEndian.Uint64(m.Body) != uint64(i) {
			t.Fatalf("message %d is %x", i, m.Body)
		}
	}
	wantRest(t, d, 3)
}

// A large ring grows even if it may not be asked to: few rings are ever full.
func TestRing_OfMoreThanAMiBGrows(t *testing.T) {
	d := newDomain(t, 16<<20)
	for _, c := range []struct{ capacity, least, most int }{
		{1 << 11, 512 << 10, 1 << 20},
		{1 << 13, 1 << 12, 64 << 10},
		{1 << 19, 1 << 12, 64 << 10},
	} {
		r, s, v, err := d.NewRing(arena.RingOptions{Capacity: c.capacity})
		testutil.NoError(t, err)
		if n := int(d.Committed(r.Handle())); n < c.least || n > c.most {
			t.Errorf("an empty ring of %d messages takes %d bytes, want %d to %d", c.capacity, n, c.least, c.most)
		}
		if r.Cap() != c.capacity {
			t.Errorf("capacity %d, want %d", r.Cap(), c.capacity)
		}
		r.Close()
		testutil.NoError(t, errors.Join(d.Release(s), d.Release(v), d.Release(r.Handle())))
	}
	wantRest(t, d, 0)
}

func TestRing_GrowsNotBeyondTheBudget(t *testing.T) {
	d := newDomain(t, 1<<20)
	r, _, _, err := d.NewRing(arena.RingOptions{Capacity: 1 << 14, Grow: true})
	testutil.NoError(t, err)
	for err == nil {
		err = r.TryPut(nil, nil, false)
	}
	if _, ok := errors.AsType[*arena.SpaceError](err); !ok {
		t.Errorf("put: %v, want a *SpaceError", err)
	}
	n := r.Len()
	var m arena.Message
	for range n {
		testutil.NoError(t, r.TryGet(&m))
	}
	wantRest(t, d, 3)
}

func TestBlock_InTooManyMessagesIsRefused(t *testing.T) {
	d := newDomain(t, 16<<20)
	r, _, _ := newRing(t, d, 8192)
	h := alloc(t, d, 64, "x")
	for range arena.MaxTransit {
		testutil.NoError(t, r.TryPut(nil, []arena.Handle{h}, false))
	}
	if err := r.TryPut(nil, []arena.Handle{h}, false); !errors.Is(err, arena.ErrTooManyInTransit) {
		t.Errorf("put: %v, want ErrTooManyInTransit", err)
	}
	if n := d.Stats().InTransit; n != arena.MaxTransit {
		t.Errorf("%d in transit, want %d", n, arena.MaxTransit)
	}
	var m arena.Message
	testutil.NoError(t, r.TryGet(&m))
	m.Discard()
	testutil.NoError(t, r.TryPut(nil, []arena.Handle{h}, true))
	testutil.NoError(t, d.Audit())
}

func TestRing_TravelsInAMessage(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		r, s, v := newRing(t, a, 4)
		outer := open(t, b, r.Handle(), s, v)
		inner, is, iv := newRing(t, a, 4)
		testutil.NoError(t, inner.TryPut([]byte("inside"), []arena.Handle{alloc(t, a, 64, "block")}, true))
		inner.Close()
		testutil.NoError(t, r.TryPut(nil, []arena.Handle{inner.Handle(), is, iv}, true))
		testutil.NoError(t, a.Close())
		var m, in arena.Message
		testutil.NoError(t, outer.TryGet(&m))
		got, err := b.OpenRing(m.Blocks[0])
		testutil.NoError(t, err)
		testutil.NoError(t, got.TryGet(&in))
		if string(in.Body) != "inside" {
			t.Errorf("got %q", in.Body)
		}
		wantMark(t, b, in.Blocks[0], "block")
		in.Discard()
		m.Discard()
		wantRest(t, b, 3)
	})
}

func TestRing_LastReferenceDrainsIt(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d := f.first
		r, s, v := newRing(t, d, 4)
		nested, ns, nv := newRing(t, d, 4)
		testutil.NoError(t, nested.TryPut(nil, []arena.Handle{alloc(t, d, 64, "deep")}, true))
		testutil.NoError(t, r.TryPut(make([]byte, 1000), []arena.Handle{alloc(t, d, 64, "x"), nested.Handle(), ns, nv},
			true))
		for _, h := range []arena.Handle{s, v, r.Handle()} {
			testutil.NoError(t, d.Release(h))
		}
		wantRest(t, d, 0)
	})
}

func TestRing_MessageOutlivesItsSendersDomain(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		r, s, v := newRing(t, a, 4)
		other := open(t, b, r.Handle(), s, v)
		testutil.NoError(t, r.TryPut(bytes.Repeat([]byte("l"), 300), []arena.Handle{alloc(t, a, 64, "block")}, true))
		testutil.NoError(t, a.Close())
		var m arena.Message
		testutil.NoError(t, other.TryGet(&m))
		wantMark(t, b, m.Blocks[0], "block")
		if len(m.Body) != 300 || m.Body[299] != 'l' {
			t.Errorf("body of %d bytes", len(m.Body))
		}
		m.Discard()
		if err := other.TryGet(&m); !errors.Is(err, arena.ErrEmpty) {
			t.Errorf("get: %v, want ErrEmpty", err)
		}
		wantRest(t, b, 3)
	})
}

func FuzzSpilledMessage(f *testing.F) {
	f.Add(make([]byte, 16))
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, p []byte) {
		blocks, body, err := arena.Unspill(p)
		if err == nil && 16+8*len(blocks)+len(body) > len(p) {
			t.Errorf("%d blocks and %d bytes out of %d", len(blocks), len(body), len(p))
		}
	})
}

// A ring whose last reference moves through the ring itself is held by that message alone until
// somebody takes it.
func TestRing_MovesThroughItself(t *testing.T) {
	d := newDomain(t, 8<<20)
	r, s, v := newRing(t, d, 4)
	testutil.NoError(t, r.TryPut([]byte("me"), []arena.Handle{r.Handle()}, true))
	testutil.NoError(t, d.Import(r.Handle())) // as another process would that knows the handle
	var m arena.Message
	testutil.NoError(t, r.TryGet(&m))
	m.Discard()
	r.Close()
	for _, h := range []arena.Handle{r.Handle(), s, v} {
		testutil.NoError(t, d.Release(h))
	}
	wantRest(t, d, 0)
}

// What a ring's head says is written by other processes.
func TestRing_OfImpossibleCapacityIsNotOpened(t *testing.T) {
	d := newDomain(t, 8<<20)
	r, _, _ := newRing(t, d, 4)
	head, err := d.Bytes(r.Handle())
	testutil.NoError(t, err)
	for _, slots := range []uint64{0, 3, 1 << 20, 1 << 56, 1 << 63} { // 2^56 slots of 256 bytes are no bytes in 64 bits
		binary.LittleEndian.PutUint64(head, slots)
		if _, err := d.OpenRing(r.Handle()); !errors.Is(err, arena.ErrCorrupt) {
			t.Errorf("%d slots: %v, want ErrCorrupt", slots, err)
		}
	}
	binary.LittleEndian.PutUint64(head, 4)
}

// A sender is in the middle of a put, and a message that was put after the claim stands behind its
// slot. No call may say that the ring is empty: it waits until the sender goes on, or is reaped.
func TestRing_IsNotEmptyBehindAPut(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		for name, get := range map[string]func(*arena.Ring, *arena.Message) error{
			"TryGet": (*arena.Ring).TryGet,
			"Get after its deadline": func(r *arena.Ring, m *arena.Message) error {
				over, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
				defer cancel()
				if err := r.Await(over); err != nil {
					return fmt.Errorf("await: %w", err)
				}
				return r.Get(over, m)
			},
		} {
			t.Run(name, func(t *testing.T) {
				a, b := f.first, f.join()
				r, s, v := newRing(t, a, 8)
				testutil.NoError(t, haltAt("put writing").Do(b, open(t, b, r.Handle(), s, v), alloc(t, b, 64, "held")))
				testutil.NoError(t, r.TryPut([]byte("mine"), nil, false))
				if r.Empty() || r.Len() != 2 {
					t.Errorf("Empty is %v and Len %d, want false and 2", r.Empty(), r.Len())
				}
				var m arena.Message
				got := async(func() error { return get(r, &m) })
				testutil.NoError(t, b.Abandon())
				reap(t, a)
				if err := <-got; err != nil || string(m.Body) != "mine" {
					t.Errorf("got %q, %v, want what was put", m.Body, err)
				}
				if err := r.TryGet(&m); err != arena.ErrEmpty || !r.Empty() || r.Len() != 0 {
					t.Errorf("then: %v, Empty is %v, Len %d", err, r.Empty(), r.Len())
				}
			})
		}
	})
}

// A receiver is in the middle of a get, and the message behind it was taken. No put may say that
// the ring is full.
func TestRing_IsNotFullBehindAGet(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		for name, put := range map[string]func(*arena.Ring, []byte) error{
			"TryPut": func(r *arena.Ring, body []byte) error { return r.TryPut(body, nil, false) },
			"Put after its deadline": func(r *arena.Ring, body []byte) error {
				over, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
				defer cancel()
				if err := r.AwaitRoom(over); err != nil {
					return fmt.Errorf("await room: %w", err)
				}
				return r.Put(over, body, nil, false)
			},
			"TryPut of a long message": func(r *arena.Ring, body []byte) error {
				return r.TryPut(append(body, make([]byte, 1000)...), nil, false)
			},
		} {
			t.Run(name, func(t *testing.T) {
				a, b := f.first, f.join()
				r, s, v := newRing(t, a, 2)
				testutil.NoError(t, r.TryPut([]byte("first"), nil, false))
				testutil.NoError(t, r.TryPut([]byte("second"), nil, false))
				testutil.NoError(t, haltAt("get reading").Do(b, open(t, b, r.Handle(), s, v), 0))
				var m arena.Message
				if err := r.TryGet(&m); err != nil || string(m.Body) != "second" {
					t.Fatalf("got %q, %v", m.Body, err)
				}
				done := async(func() error { return put(r, []byte("third")) })
				testutil.NoError(t, b.Abandon())
				reap(t, a)
				testutil.NoError(t, <-done)
				if err := r.TryGet(&m); err != nil || string(m.Body[:5]) != "third" {
					t.Errorf("got %q, %v, want what was put", m.Body, err)
				}
				m.Discard()
			})
		}
	})
}

// A sender that is stopped in the middle of a put is waited for, for a second: the ring is not said
// to be empty.
func TestRing_TryGetWaitsBrieflyForAPut(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		r, s, v := newRing(t, a, 8)
		testutil.NoError(t, haltAt("put writing").Do(b, open(t, b, r.Handle(), s, v), alloc(t, b, 64, "held")))
		testutil.ErrorIs(t, r.TryGet(new(arena.Message)), context.DeadlineExceeded)
		testutil.NoError(t, b.Abandon())
		reap(t, a)
		testutil.ErrorIs(t, r.TryGet(new(arena.Message)), arena.ErrEmpty)
	})
}

func haltAt(name string) arena.Halt {
	return arena.Halts[slices.IndexFunc(arena.Halts, func(h arena.Halt) bool { return h.Name == name })]
}
