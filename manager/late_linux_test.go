package manager_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A caller that could not wait for a lock of the dead had no occasion to repair it.
func TestMutex_ALateLockOfTheDeadIsGivenBack(t *testing.T) {
	ctx, m := testutil.Context(t), process(t)
	l, err := manager.NewMutex(ctx, m)
	closing(t, l, err)
	r, err := manager.NewRecursiveMutex(ctx, m)
	closing(t, r, err)
	c, err := manager.NewCond(ctx, m)
	closing(t, c, err)
	server := shoal.ActiveChildren()[0]
	dieWith(ctx, t, lockHolder{Lock: l, RLock: r, Condition: c})
	type locker interface {
		Lock(context.Context) error
		MarkConsistent(context.Context) error
		Unlock(context.Context) error
	}
	for name, l := range map[string]locker{"Mutex": l, "RecursiveMutex": r, "Cond": c} {
		testutil.NoError(t, server.Signal(syscall.SIGSTOP))
		testutil.Eventually(t, func() bool { return sys.Stopped(server.PID()) }, "the server does not stop")
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		err := l.Lock(short)
		cancel()
		testutil.NoError(t, server.Signal(syscall.SIGCONT))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%s: a stopped server answers: %v", name, err)
		}
		if err := l.Lock(ctx); !errors.Is(err, manager.ErrOwnerDied) {
			t.Fatalf("%s: %v", name, err)
		}
		testutil.NoError(t, errors.Join(l.MarkConsistent(ctx), l.Unlock(ctx), l.Lock(ctx), l.Unlock(ctx)))
	}
}
