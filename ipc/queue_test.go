package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

func newQueue[T any](t testing.TB, capacity int) *ipc.Queue[T] {
	t.Helper()
	q, err := ipc.NewQueue[T](capacity)
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, q.Close()) })
	return q
}

func TestQueue_KeepsTheOrder(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[string](t, 3)
		go func() {
			defer q.Finish()
			for i := range 1000 {
				if err := q.Put(ctx, fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			}
		}()
		n := 0
		for v, err := range q.All(ctx) {
			testutil.NoError(t, err)
			if v != fmt.Sprint(n) {
				t.Fatalf("%q arrived as number %d", v, n)
			}
			n++
		}
		if n != 1000 {
			t.Errorf("%d arrived", n)
		}
	})
}

// The heart of the suite: many senders, many receivers, one queue; each value once, each sender's
// in order.
func TestQueue_EachValueArrivesOnceAndInOrder(t *testing.T) {
	type item struct{ Sender, N int }
	const senders, receivers, each1 = 4, 3, 500
	for _, capacity := range []int{1, 3, 64} {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			each(t, func(t *testing.T, d *arena.Domain) {
				ctx, q := testutil.Context(t), newQueue[item](t, capacity)
				var wg sync.WaitGroup
				for s := range senders {
					out, err := q.Sender().Clone()
					testutil.NoError(t, err)
					wg.Go(func() {
						defer out.Close()
						for n := range each1 {
							if err := out.Put(ctx, item{s, n}); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				got := make([][]item, receivers)
				for r := range receivers {
					wg.Go(func() {
						for v, err := range q.All(ctx) {
							if err != nil {
								t.Error(err)
								return
							}
							got[r] = append(got[r], v)
						}
					})
				}
				testutil.NoError(t, q.Sender().Close()) // the clones are the last ones now
				wg.Wait()
				var count [senders * each1]int
				for _, items := range got {
					last := [senders]int{-1, -1, -1, -1}
					for _, v := range items {
						if v.N <= last[v.Sender] {
							t.Fatalf("%v after %d", v, last[v.Sender])
						}
						last[v.Sender] = v.N
						count[v.Sender*each1+v.N]++
					}
				}
				for i, n := range count {
					if n != 1 {
						t.Fatalf("%d of sender %d arrived %d times", i%each1, i/each1, n)
					}
				}
			})
		})
	}
}

func TestQueue_HasRoomForItsCapacity(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		q := newQueue[int](t, 3)
		for i := range 3 {
			testutil.NoError(t, q.TryPut(i))
		}
		testutil.ErrorIs(t, q.TryPut(3), ipc.ErrFull)
		if q.Len() != 3 || q.Cap() != 3 || q.Sender().Len() != 3 {
			t.Errorf("Len %d, Cap %d", q.Len(), q.Cap())
		}
		for i := range 3 {
			if v, err := q.TryGet(); v != i || err != nil {
				t.Errorf("got %d, %v", v, err)
			}
		}
		_, err := q.TryGet()
		testutil.ErrorIs(t, err, ipc.ErrEmpty)
	})
}

func TestQueue_DeadlinesSayWhatItWas(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		q := newQueue[int](t, 1)
		brief := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}
		_, err := q.Get(brief())
		testutil.ErrorIs(t, err, ipc.ErrEmpty, context.DeadlineExceeded)
		testutil.ErrorIs(t, q.Poll(brief()), ipc.ErrEmpty, context.DeadlineExceeded)
		testutil.NoError(t, q.TryPut(1))
		testutil.ErrorIs(t, q.Put(brief(), 2), ipc.ErrFull, context.DeadlineExceeded)

		over, end := context.WithDeadline(t.Context(), time.Unix(0, 0)) // ErrEmpty and ErrFull are true all the same
		defer end()
		if v, err := q.Get(over); v != 1 || err != nil {
			t.Errorf("what was there is %d, %v", v, err)
		}
		_, err = q.Get(over)
		testutil.ErrorIs(t, err, ipc.ErrEmpty, context.DeadlineExceeded)
		testutil.NoError(t, q.Put(over, 1))
		testutil.ErrorIs(t, q.Put(over, 2), ipc.ErrFull, context.DeadlineExceeded)

		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, why)
		defer cancel()
		testutil.ErrorIs(t, q.Put(ctx, 2), ipc.ErrFull, context.DeadlineExceeded, why)

		stopped, stop := context.WithCancelCause(t.Context())
		stop(why)
		_, err = q.Get(stopped)
		testutil.ErrorIs(t, err, context.Canceled, why)
		if errors.Is(err, ipc.ErrEmpty) {
			t.Errorf("a cancelled get is %v", err)
		}
	})
}

func TestQueue_CancelEndsAWait(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		q := newQueue[int](t, 1)
		ctx, cancel := context.WithCancel(testutil.Context(t))
		ended := make(chan error)
		go func() { _, err := q.Get(ctx); ended <- err }()
		go func() { ended <- q.Poll(ctx) }()
		cancel()
		testutil.ErrorIs(t, <-ended, context.Canceled)
		testutil.ErrorIs(t, <-ended, context.Canceled)
	})
}

func TestFinish_QueuesAreDrained(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[int](t, 4)
		testutil.NoError(t, q.Put(ctx, 1))
		testutil.NoError(t, q.Finish())
		testutil.NoError(t, q.Finish())
		testutil.ErrorIs(t, q.Put(ctx, 2), ipc.ErrClosed)
		if v, err := q.Get(ctx); v != 1 || err != nil {
			t.Errorf("got %d, %v", v, err)
		}
		_, err := q.Get(ctx)
		testutil.ErrorIs(t, err, ipc.ErrClosed)
		testutil.NoError(t, q.Poll(ctx)) // a Get would not wait
	})
}

func TestQueue_PutsEndWithTheLastReceiver(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[int](t, 1)
		testutil.NoError(t, q.Put(ctx, 1))
		other, err := q.Receiver().Clone()
		testutil.NoError(t, err)
		ended := make(chan error)
		go func() { ended <- q.Put(ctx, 2) }()
		testutil.NoError(t, q.Receiver().Close())
		testutil.NoError(t, other.Close())
		testutil.ErrorIs(t, <-ended, ipc.ErrClosed)
	})
}

// Python's consumers hang here: the one who takes the nil ends, the others wait for ever.
func TestFinish_IsEnoughForFourConsumers(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[*int](t, 4)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for v, err := range q.All(ctx) {
					if err != nil {
						t.Error(err)
					}
					if v == nil {
						return
					}
				}
			})
		}
		for i := range 10 {
			testutil.NoError(t, q.Put(ctx, &i))
		}
		testutil.NoError(t, q.Put(ctx, nil))
		testutil.NoError(t, q.Sender().Close())
		wg.Wait()
	})
}

func TestQueue_CloseIsIdempotentAndFinal(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		q, err := ipc.NewQueue[int](1)
		testutil.NoError(t, err)
		testutil.NoError(t, q.Close())
		testutil.NoError(t, q.Close())
		_, getErr := q.Get(ctx)
		_, tryErr := q.TryGet()
		_, getNErr := q.GetN(ctx, make([]int, 1))
		_, putNErr := q.PutN(ctx, []int{1})
		_, cloneErr := q.Sender().Clone()
		for _, err := range []error{q.Put(ctx, 1), q.TryPut(1), getErr, tryErr, getNErr, putNErr, q.Finish(),
			q.Poll(ctx), cloneErr} {
			testutil.ErrorIs(t, err, ipc.ErrClosed)
		}
		if q.Len() != 0 {
			t.Error("a closed queue has a length")
		}
		carrier := newQueue[*ipc.Queue[int]](t, 1)
		testutil.ErrorIs(t, carrier.Put(ctx, q), ipc.ErrClosed)
		var zero ipc.Queue[int]
		testutil.ErrorIs(t, zero.TryPut(1), ipc.ErrClosed)
		testutil.NoError(t, zero.Close())
	})
}

func TestQueue_CloseEndsWaits(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		for range 50 {
			empty, full := newQueue[int](t, 1), newQueue[int](t, 1)
			testutil.NoError(t, full.TryPut(1))
			ended := make(chan error)
			for range 3 {
				go func() { _, err := empty.Get(ctx); ended <- err }()
				go func() { ended <- full.Put(ctx, 2) }()
			}
			testutil.NoError(t, empty.Close())
			testutil.NoError(t, full.Close())
			for range 6 {
				testutil.ErrorIs(t, <-ended, ipc.ErrClosed)
			}
		}
	})
}

func TestQueue_ThatIsForgottenIsCollected(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		func() {
			q, err := ipc.NewQueue[*blob](2)
			testutil.NoError(t, err)
			b := newBlob(t, d, "x")
			testutil.NoError(t, q.TryPut(b))
			testutil.NoError(t, b.Close())
		}()
		testutil.Eventually(t, func() bool { collect(); return d.Stats().Blocks == 0 }, "blocks are left")
	})
}

func TestQueue_MessagesHoldTheirBlocks(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[*blob](t, 2)
		b := newBlob(t, d, "hello")
		testutil.NoError(t, q.Put(ctx, b))
		testutil.NoError(t, q.Put(ctx, b)) // a second message is a second holder
		if got := string(b.bytes()[:5]); got != "hello" {
			t.Errorf("the sender has %q", got)
		}
		testutil.NoError(t, b.Close())
		for range 2 {
			got, err := q.Get(ctx)
			testutil.NoError(t, err)
			if string(got.bytes()[:5]) != "hello" {
				t.Errorf("arrived %q", got.bytes()[:5])
			}
			testutil.NoError(t, got.Close())
		}
	})
}

func TestQueue_ObjectsOverOneBlockAreClosedOneByOne(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[[]*blob](t, 1)
		b, other := newBlob(t, d, "hello"), newBlob(t, d, "other")
		testutil.NoError(t, q.Put(ctx, []*blob{b, b, other, nil, b}))
		testutil.NoError(t, b.Close())
		testutil.NoError(t, other.Close())
		got, err := q.Get(ctx)
		testutil.NoError(t, err)
		if got[3] != nil || string(got[4].bytes()[:5]) != "hello" || string(got[2].bytes()[:5]) != "other" {
			t.Errorf("arrived %v", got)
		}
		for _, b := range got {
			if b != nil {
				testutil.NoError(t, b.Close())
			}
		}
	})
}

func TestQueue_CarriesManyBlocks(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[map[int]*blob](t, 1)
		in := map[int]*blob{}
		for i := range 300 {
			in[i] = newBlob(t, d, fmt.Sprint(i, ";"))
		}
		testutil.NoError(t, q.Put(ctx, in))
		got, err := q.Get(ctx)
		testutil.NoError(t, err)
		for i, b := range got {
			if !strings.HasPrefix(string(b.bytes()), fmt.Sprint(i, ";")) {
				t.Errorf("%d: arrived %q", i, b.bytes()[:5])
			}
			testutil.NoError(t, b.Close())
			testutil.NoError(t, in[i].Close())
		}
		if len(got) != 300 {
			t.Errorf("%d arrived", len(got))
		}
	})
}

func TestQueue_RefusesAClosedBlock(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		q := newQueue[*blob](t, 1)
		b := newBlob(t, d, "x")
		testutil.NoError(t, b.Close())
		err := q.TryPut(b)
		testutil.ErrorIs(t, err, arena.ErrStale)
		if errors.Is(err, ipc.ErrClosed) {
			t.Errorf("the queue is not closed: %v", err)
		}
	})
}

func TestQueue_CarriesValuesOfAllSizes(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[[]byte](t, 2)
		for _, n := range []int{0, 1, 150, 197, 198, 199, 200, 201, 4096, 1 << 20} {
			in := make([]byte, n)
			for i := range in {
				in[i] = byte(i * 7)
			}
			testutil.NoError(t, q.Put(ctx, in))
			got, err := q.Get(ctx)
			testutil.NoError(t, err)
			if !slices.Equal(got, in) {
				t.Errorf("%d bytes did not arrive as they were", n)
			}
		}
	})
}

func TestGetN_TakesBatches(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[int](t, 8)
		in := make([]int, 1000)
		for i := range in {
			in[i] = i
		}
		go func() {
			defer q.Finish()
			if n, err := q.PutN(ctx, in); n != len(in) || err != nil {
				t.Errorf("put %d, %v", n, err)
			}
		}()
		var got []int
		some := make([]int, 5)
		for {
			n, err := q.GetN(ctx, some)
			if err != nil {
				testutil.ErrorIs(t, err, ipc.ErrClosed)
				break
			}
			if n < 1 || n > len(some) {
				t.Fatalf("GetN returned %d", n)
			}
			got = append(got, some[:n]...)
		}
		if !slices.Equal(got, in) {
			t.Errorf("%d arrived", len(got))
		}
	})
}

// Values go together where they are short and plain: between them stand those that are not.
func TestGetN_TakesValuesOfAllSorts(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[string](t, 300)
		var in []string
		for i := range 300 {
			in = append(in, strings.Repeat("x", i*7%256))
		}
		if n, err := q.PutN(ctx, in); n != len(in) || err != nil {
			t.Fatalf("put %d, %v", n, err)
		}
		out := make([]string, 400)
		if n, err := q.GetN(ctx, out); n != len(in) || err != nil || !slices.Equal(out[:n], in) {
			t.Errorf("got %d, %v", n, err)
		}
		blobs := newQueue[*blob](t, 4)
		x := newBlob(t, d, "x")
		defer x.Close()
		if n, err := blobs.PutN(ctx, []*blob{x, x, x}); n != 3 || err != nil {
			t.Fatalf("put %d, %v", n, err)
		}
		got := make([]*blob, 4)
		n, err := blobs.GetN(ctx, got)
		if n != 3 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		for _, x := range got[:n] {
			testutil.NoError(t, x.Close())
		}
	})
}

// What comes behind a message that cannot be read is not lost with it.
func TestGetN_PassesWhatItCannotRead(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[string](t, 8)
		testutil.NoError(t, errors.Join(q.Put(ctx, "a"), ipc.PutRaw(q, []byte{0xc1}), q.Put(ctx, "b")))
		out := make([]string, 8)
		n, err := q.GetN(ctx, out)
		if n != 2 || !errors.Is(err, codec.ErrFormat) || out[0] != "a" || out[1] != "b" {
			t.Errorf("got %q, %v", out[:n], err)
		}
	})
}

func TestPutN_SaysHowFarItCame(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, cancel := context.WithCancelCause(t.Context())
		q := newQueue[int](t, 3)
		go func() {
			for q.Len() < 3 {
				time.Sleep(time.Millisecond)
			}
			cancel(context.DeadlineExceeded)
		}()
		n, err := q.PutN(ctx, []int{1, 2, 3, 4, 5})
		testutil.ErrorIs(t, err, ipc.ErrFull, context.DeadlineExceeded)
		if n != 3 {
			t.Errorf("put %d", n)
		}
	})
}

func TestPolicy_SaysWhatAFullQueueDoes(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		failing, err := ipc.NewQueueWith[int](ipc.QueueOptions{Capacity: 2, Policy: ipc.Fail})
		testutil.NoError(t, err)
		defer failing.Close()
		n, err := failing.PutN(ctx, []int{1, 2, 3})
		testutil.ErrorIs(t, err, ipc.ErrFull)
		if n != 2 {
			t.Errorf("put %d", n)
		}
		dropping, err := ipc.NewQueueWith[*blob](ipc.QueueOptions{Capacity: 2, Policy: ipc.DropOldest})
		testutil.NoError(t, err)
		defer dropping.Close()
		for i := range 5 {
			b := newBlob(t, d, fmt.Sprint(i))
			testutil.NoError(t, dropping.Put(ctx, b))
			testutil.NoError(t, b.Close())
		}
		testutil.NoError(t, dropping.Finish())
		var got []byte
		for b, err := range dropping.All(ctx) {
			testutil.NoError(t, err)
			got = append(got, b.bytes()[0])
			testutil.NoError(t, b.Close())
		}
		if string(got) != "34" {
			t.Errorf("%q is left", got)
		}
	})
}

func TestPolicy_DropOldestKeepsTheOrder(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		type item struct{ Sender, N int }
		ctx := testutil.Context(t)
		q, err := ipc.NewQueueWith[item](ipc.QueueOptions{Capacity: 2, Policy: ipc.DropOldest})
		testutil.NoError(t, err)
		defer q.Close()
		var senders, receiver sync.WaitGroup
		for s := range 3 {
			senders.Go(func() {
				for n := range 1000 {
					if err := q.Put(ctx, item{s, n}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		got := 0
		receiver.Go(func() {
			last := [3]int{-1, -1, -1}
			for v, err := range q.All(ctx) {
				if err != nil || v.N <= last[v.Sender] {
					t.Errorf("%v after %d, %v", v, last[v.Sender], err)
				}
				last[v.Sender] = v.N
				got++
			}
		})
		senders.Wait()
		testutil.NoError(t, q.Finish())
		receiver.Wait()
		if got < 1 || got > 3000 {
			t.Errorf("%d of 3000 arrived", got)
		}
	})
}

// A producer of 1,000 arrays of 100×100 float32 is done before there is a consumer.
func TestQueue_WithoutACapacityWaitsForNobody(t *testing.T) {
	d := shared(t)
	ctx := testutil.Context(t)
	q, err := ipc.NewQueue[*blob](ipc.Unbounded)
	testutil.NoError(t, err)
	defer q.Close()
	const count, size = 1000, 100 * 100 * 4
	for i := range count {
		h, err := d.Alloc(size)
		testutil.NoError(t, err)
		b := &blob{h}
		b.bytes()[0], b.bytes()[size-1] = byte(i), byte(i>>8)
		testutil.NoError(t, q.TryPut(b))
		testutil.NoError(t, b.Close())
	}
	testutil.NoError(t, q.Finish())
	if q.Len() != count {
		t.Errorf("%d wait", q.Len())
	}
	n := 0
	for b, err := range q.All(ctx) {
		testutil.NoError(t, err)
		if got := int(b.bytes()[0]) | int(b.bytes()[size-1])<<8; got != n {
			t.Fatalf("array %d arrived as number %d", got, n)
		}
		testutil.NoError(t, b.Close())
		n++
	}
	if n != count {
		t.Errorf("%d arrived", n)
	}
}

func TestQueue_WithoutACapacityTakesMemoryAsItGrows(t *testing.T) {
	d := shared(t)
	q, err := ipc.NewQueueWith[int](ipc.QueueOptions{Capacity: ipc.Unbounded, MaxBytes: 10000 * arena.SlotSize})
	testutil.NoError(t, err)
	defer q.Close()
	if b := d.Stats().Bytes; b > 128<<10 {
		t.Errorf("an empty one takes %d bytes", b)
	}
	n := 0
	for ; ; n++ {
		if err := q.TryPut(n); err != nil {
			testutil.ErrorIs(t, err, ipc.ErrFull)
			break
		}
	}
	if n != 10000 || q.Cap() != n {
		t.Errorf("%d went into a queue of %d", n, q.Cap())
	}
	for i := range n {
		if v, err := q.TryGet(); v != i || err != nil {
			t.Fatal(v, err)
		}
	}
}

// An unbounded queue takes addresses before it takes memory. A server that makes one for
// each of its clients must not run out of them, nor leave none to tensors.
func TestNewQueue_ManyWithoutACapacity(t *testing.T) {
	d, err := arena.New(arena.Options{Budget: 64 << 20, Reserve: 16 << 30})
	use(t, d, err)
	first := newQueue[int](t, ipc.Unbounded)
	if got, want := first.Cap(), 64<<20/arena.SlotSize; got != want { // a 256th of the addresses
		t.Errorf("the first has room for %d values, want %d", got, want)
	}
	for range 300 {
		newQueue[int](t, ipc.Unbounded)
	}
	if left := d.SpaceLeft(); left < 2<<30 {
		t.Errorf("%d bytes of addresses are left", left)
	}
	testutil.NoError(t, first.TryPut(1))
}

func TestNewQueue_ChecksItsOptions(t *testing.T) {
	local(t)
	for _, o := range []ipc.QueueOptions{
		{}, {Capacity: -2}, {Capacity: 1<<30 + 1}, {Capacity: 1, Policy: 3},
		{Capacity: ipc.Unbounded, MaxBytes: -1}, {Capacity: ipc.Unbounded, MaxBytes: 1},
	} {
		if q, err := ipc.NewQueueWith[int](o); err == nil {
			q.Close()
			t.Errorf("%+v is taken", o)
		}
	}
	// 0 is not a queue without a buffer, as of make(chan int, 0), nor one without a limit, as of
	// Python's Queue(0): the error says what to write.
	_, err := ipc.NewQueue[int](0)
	testutil.ErrorIs(t, err, ipc.ErrSize)
	if !strings.Contains(err.Error(), "ipc.Unbounded") {
		t.Errorf("%v: want the remedy ipc.Unbounded", err)
	}
	_, err = ipc.NewJoinableQueue[int](-2)
	testutil.ErrorIs(t, err, ipc.ErrSize)
	_, err = ipc.NewQueue[func()](1)
	testutil.ErrorIs(t, err, codec.ErrType)
}

func TestQueue_ErrorsKeepTheirMeaning(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[error](t, 1)
		_, empty := q.TryGet()
		testutil.NoError(t, q.Put(ctx, empty))
		got, err := q.Get(ctx)
		testutil.NoError(t, err)
		testutil.ErrorIs(t, got, empty)
	})
}

type sameName struct{ A int }

func TestSender_TravelsInAQueue(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		type all struct {
			Queue    *ipc.Queue[int]
			Sender   *ipc.Sender[int]
			Receiver ipc.Receiver[int]
			Conn     *ipc.PipeEnd[string, string]
			None     *ipc.Queue[int]
		}
		ctx := testutil.Context(t)
		carrier, q := newQueue[all](t, 1), newQueue[int](t, 4)
		a, b, err := ipc.Pipe[string, string]()
		testutil.NoError(t, err)
		defer a.Close()
		testutil.NoError(t, carrier.Put(ctx, all{q, q.Sender(), *q.Receiver(), b, nil}))
		testutil.NoError(t, b.Close())
		got, err := carrier.Get(ctx)
		testutil.NoError(t, err)
		if got.None != nil {
			t.Error("nil did not stay nil")
		}
		testutil.NoError(t, got.Sender.Put(ctx, 5))
		testutil.NoError(t, got.Sender.Close())
		testutil.NoError(t, got.Queue.Put(ctx, 6))
		if v, err := got.Receiver.Get(ctx); v != 5 || err != nil {
			t.Error(v, err)
		}
		if v, err := q.Get(ctx); v != 6 || err != nil {
			t.Error(v, err)
		}
		testutil.NoError(t, got.Conn.Send(ctx, "hello"))
		if v, err := a.Recv(ctx); v != "hello" || err != nil {
			t.Error(v, err)
		}
		testutil.NoError(t, errors.Join(got.Queue.Close(), got.Receiver.Close(), got.Conn.Close()))
		_, err = a.Recv(ctx)
		testutil.ErrorIs(t, err, ipc.ErrClosed)
	})
}

func TestSender_OfAnotherTypeIsRefused(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		q := newQueue[int](t, 1)
		testutil.NoError(t, reopen[*ipc.Queue[int], *ipc.Queue[int]](t, d, q))
		testutil.ErrorIs(t, reopen[*ipc.Queue[int], *ipc.Queue[string]](t, d, q), ipc.ErrType)
		testutil.ErrorIs(t, reopen[*ipc.Queue[int], *ipc.Queue[sameName]](t, d, q), ipc.ErrType)
		testutil.ErrorIs(t, reopen[*ipc.Sender[int], *ipc.Receiver[int]](t, d, q.Sender()), ipc.ErrNotEnd)
		testutil.ErrorIs(t, reopen[*ipc.Sender[int], *ipc.Queue[int]](t, d, q.Sender()), codec.ErrFormat)
		named := newQueue[map[string][2][]*sameName](t, 1)
		type queue = *ipc.Queue[map[string][2][]*sameName]
		testutil.NoError(t, reopen[queue, queue](t, d, named))
	})
}

// reopen encodes v and decodes it as a B, and closes what it got.
func reopen[A any, B interface{ Close() error }](t *testing.T, d *arena.Domain, v A) error {
	t.Helper()
	pa, err := codec.PlanOf[A]()
	testutil.NoError(t, err)
	pb, err := codec.PlanOf[B]()
	testutil.NoError(t, err)
	var enc codec.Encoder
	enc.Reset(nil)
	testutil.NoError(t, pa.Encode(&enc, v))
	defer enc.Done(true)
	m := enc.Message()
	var dec codec.Decoder
	dec.Reset(m, importer{d, m.Blocks})
	got, err := pb.Decode(&dec)
	dec.Done(err == nil)
	if err == nil {
		testutil.NoError(t, got.Close())
	} else if !reflect.ValueOf(got).IsNil() {
		t.Errorf("%v with an error", got)
	}
	return err
}

// A queue says in a budget error which values it carries.
func TestRegression_S2_5_ABudgetErrorNamesTheQueue(t *testing.T) {
	d := shared(t)
	q := newQueue[*blob](t, 4)
	big, err := d.Alloc(2 << 20)
	testutil.NoError(t, err)
	testutil.NoError(t, q.TryPut(&blob{big}))
	testutil.NoError(t, d.Release(big))
	testutil.NoError(t, ipc.Bind(t.Context(), "results", q))
	defer ipc.Unlink("results")
	_, err = d.Alloc(1 << 30)
	var full *arena.SpaceError
	if !errors.As(err, &full) || !strings.Contains(err.Error(),
		`2097152 bytes by 1 unread in queue "results" of *ipc_test.blob`) {
		t.Error(err)
	}
	b, err := q.TryGet()
	testutil.NoError(t, err)
	testutil.NoError(t, b.Close())
}

func TestQueue_WithoutACapacityKeepsTheOrder(t *testing.T) {
	shared(t)
	ctx := testutil.Context(t)
	q, err := ipc.NewQueue[int](ipc.Unbounded)
	testutil.NoError(t, err)
	if q.Len() != 0 {
		t.Error("a new queue is not empty")
	}
	for i := range 100 {
		testutil.NoError(t, q.Put(ctx, i))
	}
	for i := range 100 {
		if q.Len() != 100-i {
			t.Errorf("%d values with %d to come", q.Len(), 100-i)
		}
		if v, err := q.Get(ctx); v != i || err != nil {
			t.Fatalf("%d, %v", v, err)
		}
	}
	if q.Len() != 0 {
		t.Error("a drained queue is not empty")
	}
	testutil.NoError(t, q.Close())
	testutil.ErrorIs(t, q.Put(ctx, 1), ipc.ErrClosed)
}

// A value whose own code panics leaves nothing behind that the next value would be written over or
// read from: the queue goes on.
func TestQueue_GoesOnAfterAPanicOfAValue(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[touchy](t, 4)
		panics := func(f func()) (p any) {
			defer func() { p = recover() }()
			f()
			return nil
		}
		put := func(v touchy) func() { return func() { testutil.NoError(t, q.Put(ctx, v)) } }
		get := func() { _, err := q.Get(ctx); testutil.NoError(t, err) }
		for range 3 {
			if p := panics(put(panicsAtPut)); p == nil {
				t.Fatal("Put of a value whose MarshalWire panics returned")
			}
			put(panicsAtGet)()
			if p := panics(get); p == nil {
				t.Fatal("Get of a value whose UnmarshalWire panics returned")
			}
			put(7)()
			if v, err := q.Get(ctx); err != nil || v != 7 {
				t.Fatalf("after the panics the queue gives %v, %v; want 7", v, err)
			}
		}
	})
}

// A touchy panics at one of two ends.
type touchy int

const (
	panicsAtPut touchy = -1
	panicsAtGet touchy = -2
)

func (v touchy) MarshalWire(e *codec.Encoder) error {
	if v == panicsAtPut {
		e.OnDone(codec.WatcherFunc(func(bool) {}))
		panic("at put")
	}
	e.Int(int64(v))
	return nil
}

func (v *touchy) UnmarshalWire(d *codec.Decoder) error {
	n, err := d.Int()
	if *v = touchy(n); *v == panicsAtGet {
		d.OnDone(codec.WatcherFunc(func(bool) {}))
		panic("at get")
	}
	return err
}

// A request that no server has taken is let go of with the last receiver, and with it the sending
// end for the reply: the wait for that reply ends.
func TestQueue_LastReceiverLetsGoOfRequests(t *testing.T) {
	type request struct {
		Reply *ipc.Sender[int]
	}
	each(t, func(t *testing.T, d *arena.Domain) {
		requests, replies := newQueue[request](t, 4), newQueue[int](t, 1)
		testutil.NoError(t, requests.Put(t.Context(), request{replies.Sender()}))
		testutil.NoError(t, replies.Sender().Close())
		testutil.NoError(t, requests.Receiver().Close())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if v, err := replies.Get(ctx); !errors.Is(err, ipc.ErrClosed) {
			t.Errorf("a reply of nobody: %v, %v", v, err)
		}
		if n := requests.Sender().Len(); n != 0 {
			t.Errorf("%d requests are left", n)
		}
	})
}
