package shoal_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// inheritedEnds is the argument of a process that dies before it reads it.
type inheritedEnds struct {
	Barrier  *ipc.Barrier
	Cond     *ipc.Cond
	Sender   *ipc.Sender[string]
	Receiver *ipc.Receiver[string]
}

var inherits = shoal.Register("inherits", func(ctx context.Context, _ int, l inheritedEnds) error {
	defer l.Sender.Close()
	defer l.Receiver.Close()
	<-ctx.Done() // a kill may be slower than this start, and must find that it has not come to the barrier
	return ctx.Err()
})

// Those that wait for a process are told if it dies before it has read its argument, or cannot be
// started. A lock that it never had is nobody's trouble.
func TestEarlyDeath_WhatAnUnbornProcessWasToHave(t *testing.T) {
	for name, opts := range map[string]shoal.Options{
		"killed": {}, "killed warm": {Start: shoal.WarmStart}, "never started": {Executable: "/nonexistent"},
		"killed, and would be started again": {Restart: shoal.Restart{Max: 1}},
	} {
		t.Run(name, func(t *testing.T) { unborn(t, opts, name != "never started") })
	}
	testutil.NoError(t, shoal.Warm(testutil.Context(t), 0, shoal.Options{}))
}

func unborn(t *testing.T, opts shoal.Options, kill bool) {
	ctx := testutil.Context(t)
	barrier, err := ipc.NewBarrier(2)
	testutil.NoError(t, err)
	cond, err := ipc.NewCond(nil)
	testutil.NoError(t, err)
	up, err := ipc.NewQueue[string](1)
	testutil.NoError(t, err)
	down, err := ipc.NewQueue[string](1)
	testutil.NoError(t, err)
	testutil.NoError(t, down.Put(ctx, "full"))
	g := shoal.NewGroup(ctx, opts)
	sender, receiver := up.Sender(), down.Receiver()
	p := inherits.Go(g, inheritedEnds{barrier, cond, sender, receiver})
	testutil.NoError(t, errors.Join(sender.Close(), receiver.Close()))
	var served atomic.Bool
	waited := make(chan error, 1)
	go func() {
		testutil.NoError(t, cond.Mutex().Lock(ctx))
		waited <- errors.Join(cond.WaitFor(ctx, served.Load), cond.Mutex().Unlock())
	}()
	pid := p.PID()
	if kill {
		p.Kill()
	}
	_, atBarrier := barrier.Wait(ctx)
	_, byGet := up.Get(ctx)
	byPut := down.Put(ctx, "more")
	for what, err := range map[string]error{"barrier": atBarrier, "get": byGet, "put": byPut} {
		if !kill && what != "barrier" && errors.Is(err, ipc.ErrClosed) {
			continue // the ends were still its starter's, which has closed them
		}
		if e := new(arena.PeerError); !errors.As(err, &e) || e.PID != pid {
			t.Errorf("%s: %v: want the death of process %d", what, err, pid)
		}
	}
	testutil.NoError(t, cond.Mutex().Lock(ctx))
	served.Store(true)
	testutil.NoError(t, errors.Join(cond.NotifyAll(), cond.Mutex().Unlock()))
	testutil.NoError(t, <-waited)
	if err := g.Wait(); (err == nil) != kill {
		t.Error(err)
	}
	testutil.NoError(t, barrier.Reset())
	if len(barrier.Dead()) != 0 || barrier.Broken() {
		t.Error("a reset does not forget")
	}
	testutil.NoError(t, errors.Join(barrier.Close(), cond.Close(), up.Close(), down.Close()))
	if n := blocksLeft(t); n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

func blocksLeft(t *testing.T) (n int) {
	d, err := arena.Default()
	testutil.NoError(t, err)
	for ctx := testutil.Context(t); ctx.Err() == nil; d.Reap() {
		if n = d.Stats().Blocks; n == 0 {
			break
		}
	}
	return n
}
