package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

var leave = shoal.Register("leave", func(_ context.Context, _ int, fail bool) error {
	if fail {
		return errors.New("as it was told")
	}
	return nil
})

var stay = shoal.Register("stay", func(ctx context.Context, _ int, _ struct{}) error {
	<-ctx.Done()
	return nil
})

// Whatever the scheduler does, an ended process is reported beside a pipe that is ready, by the
// process, its group, and any function that looks at it before it looks at its context.
func TestRegression_S1_3_WaitReportsAllThatAreReady(t *testing.T) {
	local(t)
	ctx := testutil.Context(t)
	here, there, err := ipc.Pipe[int, int]()
	testutil.NoError(t, err)
	defer here.Close()
	defer there.Close()
	testutil.NoError(t, there.Send(ctx, 1))
	g := shoal.NewGroup(ctx, shoal.Options{Start: shoal.GoroutineStart})
	defer g.Close()
	ended, lives := leave.Go(g, false), shoal.NewGroup(ctx, shoal.Options{Start: shoal.GoroutineStart})
	defer lives.Close()
	runs := stay.Go(lives, struct{}{})
	testutil.NoError(t, ended.Wait(ctx))
	testutil.NoError(t, g.Poll(ctx))
	byWait := func(p *shoal.Process) ipc.Poller {
		return ipc.PollFunc(func(ctx context.Context) error { p.Wait(ctx); return context.Cause(ctx) })
	}
	bySelect := func(p *shoal.Process) ipc.Poller {
		return ipc.PollFunc(func(ctx context.Context) error {
			if !p.Alive() {
				return nil
			}
			select {
			case <-p.Done():
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	things := []ipc.Poller{here, byWait(ended), byWait(runs), ended, runs, g, lives, bySelect(ended), bySelect(runs)}
	for range 100 {
		ready, err := ipc.Wait(ctx, things...)
		if want := []int{0, 1, 3, 5, 7}; err != nil || !slices.Equal(ready, want) {
			t.Fatalf("%v, %v, want %v", ready, err, want)
		}
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	ready, err := ipc.Wait(over, things...)
	if want := []int{0, 1, 3, 5, 7}; err != nil || !slices.Equal(ready, want) {
		t.Errorf("with a context that has ended: %v, %v, want %v", ready, err, want)
	}
	_, err = ipc.Wait(over, runs, byWait(runs))
	testutil.ErrorIs(t, err, context.Canceled)
}

// A failure is an end as well: it wakes those that wait.
func TestWait_ForAProcessAndAGroup(t *testing.T) {
	local(t)
	ctx := testutil.Context(t)
	g := shoal.NewGroup(ctx, shoal.Options{Start: shoal.GoroutineStart})
	defer g.Close()
	q := newQueue[int](t, 1)
	for _, thing := range []ipc.Poller{leave.Go(g, true), g} {
		ready, err := ipc.Wait(ctx, q, thing)
		if err != nil || !slices.Equal(ready, []int{1}) {
			t.Errorf("%T: %v, %v", thing, ready, err)
		}
	}
}

// Taking from the first that is ready, as programs do, does not keep the others from being
// reported: all that have a value are named each time, so no sender waits for ever behind a busy
// one.
func TestWait_IsFair(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		const senders, values = 4, 50
		ctx := testutil.Context(t)
		var things []ipc.Poller
		var pipes []*ipc.PipeEnd[int, int]
		for range senders {
			here, there, err := ipc.Pipe[int, int]()
			testutil.NoError(t, err)
			defer here.Close()
			defer there.Close()
			testutil.NoError(t, there.Send(ctx, 0))
			things, pipes = append(things, here), append(pipes, there)
		}
		var taken [senders]int
		for round := range values {
			ready, err := ipc.Wait(ctx, things...)
			if err != nil || len(ready) != senders {
				t.Fatalf("round %d: %v, %v", round, ready, err)
			}
			for _, i := range ready {
				_, err := things[i].(*ipc.PipeEnd[int, int]).Recv(ctx)
				testutil.NoError(t, err)
				taken[i]++
				testutil.NoError(t, pipes[i].Send(ctx, round))
			}
		}
		if taken != [senders]int{values, values, values, values} {
			t.Errorf("taken %v", taken)
		}
	})
}

// A stream between two domains, and a caller of a listener, are seen without waiting.
func TestWait_SeesStreamsAndCallersThatAreReady(t *testing.T) {
	local(t)
	ctx := testutil.Context(t)
	q := newQueue[int](t, 1)
	testutil.NoError(t, q.TryPut(1))
	l, err := ipc.Listen[int](fmt.Sprintf("@shoal-wait-%p", &q), []byte("key"))
	testutil.NoError(t, err)
	defer l.Close()
	c, err := ipc.Dial[int](ctx, l.Addr(), []byte("key"))
	testutil.NoError(t, err)
	defer c.Close()
	testutil.NoError(t, l.Poll(ctx))
	for range 20 {
		ready, err := ipc.Wait(ctx, q, l)
		if err != nil || !slices.Equal(ready, []int{0, 1}) {
			t.Fatalf("%v, %v", ready, err)
		}
	}
}

// What GetN enters it leaves, whatever the slice: the end is released by Close, and senders learn
// of it.
func TestRegression_S1_1_GetNIntoAnEmptySliceLeaves(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[int](t, 1)
		testutil.NoError(t, q.TryPut(7))
		for _, vs := range [][]int{nil, {}} {
			if n, err := q.Receiver().GetN(ctx, vs); n != 0 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
		if q.Len() != 1 {
			t.Errorf("it took the value")
		}
		out, err := q.Sender().Clone()
		testutil.NoError(t, err)
		defer out.Close()
		testutil.NoError(t, q.Receiver().Close())
		_, err = q.Receiver().GetN(ctx, nil)
		testutil.ErrorIs(t, err, ipc.ErrClosed)
		testutil.ErrorIs(t, out.TryPut(8), ipc.ErrClosed)
		testutil.NoError(t, q.Close())
		testutil.NoError(t, out.Close())
		testutil.Eventually(t, func() bool { collect(); return d.Stats().Blocks == 0 }, "blocks are left")
	})
}

func TestRegression_S1_7_QueuesOfSizesThatThereCannotBe(t *testing.T) {
	local(t)
	for what, opts := range map[string]ipc.QueueOptions{
		"none": {}, "negative": {Capacity: -2}, "too many": {Capacity: 1 << 31},
		"no byte":        {Capacity: ipc.Unbounded, MaxBytes: -1},
		"few bytes":      {Capacity: ipc.Unbounded, MaxBytes: 1},
		"too many bytes": {Capacity: ipc.Unbounded, MaxBytes: 1 << 40}, "policy": {Capacity: 1, Policy: 99},
	} {
		if _, err := ipc.NewQueueWith[int](opts); !errors.Is(err, ipc.ErrSize) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, n := range []int{0, -2, 1 << 31} {
		if _, err := ipc.NewQueue[int](n); !errors.Is(err, ipc.ErrSize) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// A Poll of the caller that panics, or calls runtime.Goexit, does so in the caller's goroutine.
func TestWait_APanicOfAPollIsTheCallers(t *testing.T) {
	local(t)
	ctx := testutil.Context(t)
	waits := ipc.PollFunc(func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
	caught := func() (p any) {
		defer func() { p = recover() }()
		ipc.Wait(ctx, waits, ipc.PollFunc(func(context.Context) error { panic("on purpose") }))
		return nil
	}()
	if text := fmt.Sprint(caught); !strings.Contains(text, "on purpose") || !strings.Contains(text, "wait_test.go") {
		t.Errorf("Wait panicked with %q, want the value and the stack of the Poll", text)
	}
	returned := make(chan bool, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ipc.Wait(ctx, waits, ipc.PollFunc(func(context.Context) error { runtime.Goexit(); return nil }))
		returned <- true
	}()
	<-ended
	if len(returned) > 0 {
		t.Error("Wait returned, want the end of its goroutine")
	}
}
