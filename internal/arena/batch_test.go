package arena_test

import (
	"encoding/binary"
	"errors"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// numbers returns a batch of the numbers from first on, each a message.
func numbers(first, n int) *arena.Batch {
	b := new(arena.Batch)
	for i := range n {
		b.Body = binary.AppendUvarint(b.Body, uint64(first+i)) // of one or two bytes
		b.Ends = append(b.Ends, len(b.Body))
	}
	return b
}

func numberOf(body []byte) int {
	n, _ := binary.Uvarint(body)
	return int(n)
}

func TestBatch_GoesRoundTheRing(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		r, s, v := newRing(t, f.first, 11)
		other := open(t, f.join(), r.Handle(), s, v)
		var got arena.Batch
		var m arena.Message
		sent, came := 0, 0
		for i := range 200 {
			most := i % 13
			room := r.Room()
			n, err := r.TryPutBatch(numbers(sent, most))
			if n != min(most, room) || (err != nil) != (n == 0 && most > 0) {
				t.Fatalf("put %d of %d into room for %d: %v", n, most, room, err)
			}
			sent += n
			if i%3 == 0 && r.Room() > 0 { // one between them by itself
				testutil.NoError(t, r.TryPut(binary.AppendUvarint(nil, uint64(sent)), nil, false))
				sent++
			}
			if i%5 == 0 && came < sent {
				testutil.NoError(t, other.TryGet(&m))
				if n := numberOf(m.Body); n != came {
					t.Fatalf("%d came as the %dth", n, came)
				}
				came++
			}
			got.Reset()
			most = i % 7
			n, err = other.TryGetBatch(&got, most)
			if want := min(most, sent-came); n != want || err != nil || len(got.Ends) != n {
				t.Fatalf("got %d of %d, %v", n, want, err)
			}
			for j := range n {
				if n := numberOf(got.At(j)); n != came {
					t.Fatalf("%d came as the %dth", n, came)
				}
				came++
			}
		}
		if sent < 200 || r.Len() != sent-came {
			t.Errorf("%d sent, %d came, %d are there", sent, came, r.Len())
		}
		testutil.NoError(t, other.TryGet(&m)) // and the rest is drained with the ring
		wantRest(t, f.first, 3)
	})
}

// A batch stops at a message that has blocks, or that does not fit into its slot.
func TestBatch_LeavesMessagesWithBlocksToGet(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		r, _, _ := newRing(t, f.first, 16)
		_, err := r.TryPutBatch(numbers(0, 3))
		testutil.NoError(t, err)
		h := alloc(t, f.first, 64, "b")
		testutil.NoError(t, r.TryPut([]byte{3}, []arena.Handle{h}, true))
		testutil.NoError(t, r.TryPut(make([]byte, arena.SlotBody+1), nil, false))
		_, err = r.TryPutBatch(numbers(5, 2))
		testutil.NoError(t, err)
		var b arena.Batch
		var m arena.Message
		for _, want := range []int{3, 0, 2} {
			b.Reset()
			if n, err := r.TryGetBatch(&b, 9); n != want || err != nil {
				t.Fatalf("a batch of %d, %v, want %d", n, err, want)
			}
			if r.Len() > 2 {
				testutil.NoError(t, r.TryGet(&m))
				m.Discard()
			}
		}
		wantRest(t, f.first, 3)
	})
}

func TestBatch_OfAFinishedOrFullRing(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		r, _, _ := newRing(t, f.first, 2)
		if n, err := r.TryPutBatch(numbers(0, 5)); n != 2 || err != nil {
			t.Errorf("put %d, %v", n, err)
		}
		if n, err := r.TryPutBatch(numbers(0, 5)); n != 0 || !errors.Is(err, arena.ErrFull) {
			t.Errorf("put %d, %v, want ErrFull", n, err)
		}
		r.Finish()
		if n, err := r.TryPutBatch(numbers(0, 5)); n != 0 || !errors.Is(err, arena.ErrFinished) {
			t.Errorf("put %d, %v, want ErrFinished", n, err)
		}
		var b arena.Batch
		if n, err := r.TryGetBatch(&b, 5); n != 2 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	})
}

func TestBatch_GrowsTheRing(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		r, _, _, err := f.first.NewRing(arena.RingOptions{Capacity: 4096, Grow: true})
		testutil.NoError(t, err)
		for first := 0; first < 4000; first += 100 {
			if n, err := r.TryPutBatch(numbers(first, 100)); n != 100 || err != nil {
				t.Fatalf("put %d, %v", n, err)
			}
		}
		var b arena.Batch
		if n, err := r.TryGetBatch(&b, 5000); n != 4000 || err != nil || numberOf(b.At(3999)) != 3999 {
			t.Errorf("got %d, %v", n, err)
		}
	})
}

func TestBatch_EveryMessageArrivesOnceAndInOrder(t *testing.T) {
	const producers, consumers, each = 3, 3, 5000
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		r, s, v := newRing(t, f.first, 37)
		var put, get sync.WaitGroup
		for p := range producers {
			ring := open(t, f.join(), r.Handle(), s, v)
			put.Go(func() {
				for i := 0; i < each; {
					n, err := ring.TryPutBatch(numbers(p*each+i, min(1+i%50, each-i)))
					if errors.Is(err, arena.ErrFull) {
						err = ring.AwaitRoom(ctx)
					}
					if err != nil {
						t.Error(err)
						return
					}
					i += n
				}
			})
		}
		var mu sync.Mutex
		seen := make(map[int]bool)
		for c := range consumers {
			ring := open(t, f.join(), r.Handle(), s, v)
			get.Go(func() {
				var b arena.Batch
				var m arena.Message
				last := make(map[int]int)
				for most := 1 + c; ; most = most%40 + 1 {
					b.Reset()
					if _, err := ring.TryGetBatch(&b, most); err != nil {
						t.Error(err)
						return
					}
					if len(b.Ends) == 0 {
						err := ring.Get(ctx, &m)
						if errors.Is(err, arena.ErrFinished) {
							return
						} else if err != nil {
							t.Error(err)
							return
						}
						b.Body, b.Ends = append(b.Body, m.Body...), append(b.Ends, len(m.Body))
					}
					mu.Lock()
					for i := range b.Ends {
						n := numberOf(b.At(i))
						if before, ok := last[n/each]; ok && before > n {
							t.Errorf("producer %d: %d after %d", n/each, n, before)
						}
						if last[n/each] = n; seen[n] {
							t.Errorf("message %d came twice", n)
						}
						seen[n] = true
					}
					mu.Unlock()
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
