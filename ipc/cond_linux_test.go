package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A bounded buffer is the textbook's: one lock, and two conditions of it.
type boundedBuffer struct {
	Mu                *ipc.Mutex
	NotEmpty, NotFull *ipc.Cond
	Len               *ipc.Value[int64]
	Puts              bool
	Count             int
}

const bufferRoom = 2

func (b boundedBuffer) change(ctx context.Context, by int64, until, tell *ipc.Cond, ready func(n int64) bool) error {
	if err := b.Mu.Lock(ctx); err != nil {
		return err
	}
	err := until.WaitFor(ctx, func() bool { n, err := b.Len.Load(); return err != nil || ready(n) })
	if err == nil {
		_, err = b.Len.Add(by)
	}
	if n, e := b.Len.Load(); err == nil && (e != nil || n < 0 || n > bufferRoom) {
		err = errors.Join(e, fmt.Errorf("%d values are in a buffer for %d", n, bufferRoom))
	}
	return errors.Join(err, tell.Notify(1), b.Mu.Unlock())
}

func (b boundedBuffer) use(ctx context.Context) (err error) {
	for n := 0; err == nil && n < b.Count; n++ {
		if b.Puts {
			err = b.change(ctx, 1, b.NotFull, b.NotEmpty, func(n int64) bool { return n < bufferRoom })
		} else {
			err = b.change(ctx, -1, b.NotEmpty, b.NotFull, func(n int64) bool { return n > 0 })
		}
	}
	return err
}

var bufferUser = newRole("bounded buffer", func(ctx context.Context, b boundedBuffer) error { return b.use(ctx) })

func newBuffer(t *testing.T) boundedBuffer {
	t.Helper()
	b := boundedBuffer{Count: 500}
	b.Mu, b.Len = testutil.Value(ipc.NewMutex())(t), testutil.Value(ipc.NewValue[int64](0))(t)
	b.NotEmpty, b.NotFull = testutil.Value(ipc.NewCond(b.Mu))(t), testutil.Value(ipc.NewCond(b.Mu))(t)
	t.Cleanup(func() {
		testutil.NoError(t, errors.Join(b.NotEmpty.Close(), b.NotFull.Close(), b.Mu.Close(), b.Len.Close()))
	})
	return b
}

func TestCond_TwoHaveOneMutex(t *testing.T) {
	d := shared(t)
	b := newBuffer(t)
	var cmds []*exec.Cmd
	for _, puts := range []bool{true, false, true} {
		b.Puts = puts
		cmds = append(cmds, bufferUser.start(t, d, b))
	}
	b.Puts = false
	testutil.NoError(t, b.use(testutil.Context(t)))
	wait(t, cmds...)
	if n := testutil.Value(b.Len.Load())(t); n != 0 {
		t.Errorf("%d values are left", n)
	}
}

// A lock belongs to the process: whichever of its Mutexes has locked, each of them unlocks, and
// each Cond of it waits.
func TestMutex_IsUnlockedByAnyOfTheProcess(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, b := testutil.Context(t), newBuffer(t)
		q := newQueue[*ipc.Mutex](t, 1)
		testutil.NoError(t, q.Put(ctx, b.Mu))
		again := testutil.Value(q.Get(ctx))(t)
		all := []*ipc.Mutex{b.Mu, again, b.NotEmpty.Mutex(), b.NotFull.Mutex()}
		for _, locks := range all {
			for _, unlocks := range all {
				testutil.NoError(t, locks.Lock(ctx))
				for _, c := range []*ipc.Cond{b.NotEmpty, b.NotFull} {
					short, cancel := context.WithTimeout(ctx, time.Millisecond)
					testutil.ErrorIs(t, c.Wait(short), context.DeadlineExceeded)
					cancel()
				}
				testutil.NoError(t, unlocks.Unlock())
				testutil.ErrorIs(t, unlocks.Unlock(), ipc.ErrNotOwner)
				testutil.ErrorIs(t, locks.Unlock(), ipc.ErrNotOwner)
				testutil.ErrorIs(t, b.NotFull.Wait(ctx), ipc.ErrNotOwner)
			}
		}
		testutil.NoError(t, again.Lock(ctx)) // a Mutex that is closed while it is locked is in use until the unlock
		testutil.NoError(t, again.Close())
		testutil.NoError(t, b.Mu.Unlock())
		testutil.ErrorIs(t, again.Unlock(), ipc.ErrClosed)
	})
}
