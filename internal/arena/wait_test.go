package arena_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestWait_EndsWithItsContext(t *testing.T) {
	d := newDomain(t, 8<<20)
	reason := errors.New("enough")
	for name, block := range map[string]func(context.Context, *arena.Ring) error{
		"get": func(ctx context.Context, r *arena.Ring) error { return r.Get(ctx, new(arena.Message)) },
		"put": func(ctx context.Context, r *arena.Ring) error {
			return errors.Join(r.TryPut(nil, nil, false), r.Put(ctx, nil, nil, false))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := newRing(t, d, 1)
			ctx, cancel := context.WithCancelCause(t.Context())
			got := make(chan error)
			go func() { got <- block(ctx, r) }()
			cancel(reason)
			if err := <-got; !errors.Is(err, reason) {
				t.Errorf("%v, want the context's cause", err)
			}
		})
	}
}

// Half of the waiters give up just when messages come: the others must get every one.
func TestWait_CancelledWaitersLoseNoWake(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		r, s, v := newRing(t, f.first, 8)
		rings := []*arena.Ring{r, open(t, f.join(), r.Handle(), s, v)}
		for range 300 {
			impatient, cancel := context.WithCancel(ctx)
			var g sync.WaitGroup
			var got atomic.Int32
			for i := range 8 {
				g.Go(func() {
					mine := ctx
					if i >= 4 {
						mine = impatient
					}
					var m arena.Message
					err := rings[i%2].Get(mine, &m)
					if err == nil {
						got.Add(1)
					} else if i < 4 {
						t.Errorf("a patient waiter: %v", err)
					}
				})
			}
			g.Go(cancel)
			for i := range 8 {
				testutil.NoError(t, rings[i/2%2].TryPut([]byte{1}, nil, false))
			}
			g.Wait()
			cancel()
			var m arena.Message
			for rings[0].TryGet(&m) == nil {
				got.Add(1)
			}
			if got.Load() != 8 {
				t.Fatalf("%d messages of 8 arrived", got.Load())
			}
		}
	})
}

func TestWait_PingPongAcrossParticipants(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		there, s1, v1 := newRing(t, a, 1)
		back, s2, v2 := newRing(t, a, 1)
		there2, back2 := open(t, b, there.Handle(), s1, v1), open(t, b, back.Handle(), s2, v2)
		var g sync.WaitGroup
		g.Go(func() {
			var m arena.Message
			for range 2000 {
				if err := errors.Join(there2.Get(ctx, &m), back2.Put(ctx, m.Body, m.Blocks, true)); err != nil {
					t.Error(err)
					return
				}
			}
		})
		h := alloc(t, a, 64, "ball")
		var m arena.Message
		for range 2000 {
			testutil.NoError(t, there.Put(ctx, []byte("x"), []arena.Handle{h}, true))
			testutil.NoError(t, back.Get(ctx, &m))
		}
		g.Wait()
		wantMark(t, a, h, "ball")
		wantRest(t, a, 7)
	})
}

func TestWait_EndsWithClose(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		d := f.join()
		r, _, _ := newRing(t, d, 1)
		var g sync.WaitGroup
		for range 10 {
			g.Go(func() {
				if err := r.Get(ctx, new(arena.Message)); !errors.Is(err, arena.ErrClosed) {
					t.Errorf("get: %v, want ErrClosed", err)
				}
			})
		}
		testutil.NoError(t, d.Close())
		g.Wait()
		wantRest(t, f.first, 0)
	})
}

func TestWait_OfMoreGoroutinesThanLanes(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		d := f.first
		r, _, _ := newRing(t, d, 4)
		var g sync.WaitGroup
		for range 100 {
			g.Go(func() {
				for range 20 {
					h, err := d.Alloc(64)
					if err = errors.Join(err, r.Put(ctx, nil, []arena.Handle{h}, true)); err != nil {
						t.Error(err)
						return
					}
				}
			})
			g.Go(func() {
				var m arena.Message
				for range 20 {
					if err := r.Get(ctx, &m); err != nil {
						t.Error(err)
						return
					}
					m.Discard()
				}
			})
		}
		g.Wait()
		wantRest(t, d, 3)
	})
}

// A waiter for a message need not be a receiver: it is woken when the last one goes, has nothing to
// do with that, and waits on.
func TestWait_WakesOnceForAnEndThatIsNotItsOwn(t *testing.T) {
	d := newDomain(t, 8<<20)
	ctx := testutil.Context(t)
	r, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: 1})
	testutil.NoError(t, err)
	waited := make(chan error)
	go func() { waited <- r.Await(ctx) }()
	testutil.Eventually(t, func() bool { return r.Waiters() > 0 }, "nobody waits")
	testutil.NoError(t, d.Release(receivers))
	select {
	case err := <-waited:
		t.Fatalf("woken for nothing: %v", err)
	default:
	}
	testutil.NoError(t, d.Release(senders))
	testutil.NoError(t, <-waited)
	r.Close()
	testutil.NoError(t, d.Release(r.Handle()))
}
