package manager_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A debtor changes values in a transaction, or holds objects, and says so. Then it waits for its
// end.
type debtor struct {
	M     *manager.Manager
	V     *manager.Value[int]
	D     *manager.Dict[string, *manager.List[int]]
	Ready *ipc.Sender[bool]
}

var dieInTxn = shoal.Register("manager txn victim", func(ctx context.Context, _ int, w debtor) error {
	return w.M.Txn(ctx, func(tx context.Context) error {
		l, err := manager.NewList(tx, w.M, 1)
		if err != nil {
			return err
		}
		if err := errors.Join(w.V.Set(tx, 2), w.D.Set(tx, "new", l), w.Ready.Put(ctx, true)); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
})

// A client that asks while the transaction goes on waits, and sees nothing of it when its client
// has been killed.
func TestTxn_OfAKilledClientIsUndone(t *testing.T) {
	ctx, m := testutil.Context(t), process(t)
	v, err := manager.NewValue(ctx, m, 1)
	closing(t, v, err)
	d, err := manager.NewDict[string, *manager.List[int]](ctx, m)
	closing(t, d, err)
	ready, err := ipc.NewQueue[bool](1)
	closing(t, ready, err)
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	p := dieInTxn.Go(g, debtor{m, v, d, ready.Sender()})
	_, err = ready.Get(ctx)
	testutil.NoError(t, err)
	asked := make(chan int)
	go func() {
		n, err := v.Get(ctx)
		if err != nil {
			t.Error(err)
		}
		asked <- n
	}()
	select {
	case n := <-asked:
		t.Fatalf("%d was seen within the transaction", n)
	case <-time.After(10 * time.Millisecond): // it would be a coincidence, and no failure, if it asked later
	}
	testutil.NoError(t, p.Signal(os.Kill))
	if n := <-asked; n != 1 {
		t.Errorf("%d, not 1", n)
	}
	n, err := d.Len(ctx)
	want(t, n, err, 0)
	sum, err := v.Add(ctx, 5)
	want(t, sum, err, 6)
}

var holdObjects = shoal.Register("manager holder", func(ctx context.Context, _ int, w debtor) error {
	for range 3 {
		l, err := manager.NewList(ctx, w.M, 1, 2, 3)
		if err != nil {
			return err
		}
		defer l.Close()
	}
	if err := w.Ready.Put(ctx, true); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
})

// The server is asked for nothing meanwhile: it hears of the death by itself.
func TestManager_ObjectsOfAKilledClientAreFreed(t *testing.T) {
	ctx, m := testutil.Context(t), process(t)
	v, err := manager.NewValue(ctx, m, 1)
	closing(t, v, err)
	d, err := manager.NewDict[string, *manager.List[int]](ctx, m)
	closing(t, d, err)
	ready, err := ipc.NewQueue[bool](1)
	closing(t, ready, err)
	domain, err := arena.Default()
	testutil.NoError(t, err)
	before := domain.Stats().Blocks
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	p := holdObjects.Go(g, debtor{m, v, d, ready.Sender()})
	_, err = ready.Get(ctx)
	testutil.NoError(t, err)
	if n := domain.Stats().Blocks; n < before+3 {
		t.Errorf("%d blocks became %d", before, n)
	}
	testutil.NoError(t, p.Signal(os.Kill))
	<-end(ctx, p)
	testutil.EventuallyNoError(t, func() error {
		if n := domain.Stats().Blocks; n != before {
			return fmt.Errorf("%d blocks became %d", before, n)
		}
		return nil
	})
}

// An actor is killed in the action of a barrier.
type actor struct {
	Barrier *manager.Barrier
	Ready   *ipc.Sender[int]
}

var act = shoal.Register("manager actor", func(ctx context.Context, _ int, a actor) error {
	a.Barrier.Action = func() error {
		err := a.Ready.Put(ctx, os.Getpid())
		<-ctx.Done()
		return err
	}
	_, err := a.Barrier.Wait(ctx)
	return err
})

func TestBarrier_IsBrokenByAKilledActor(t *testing.T) {
	ctx, m := testutil.Context(t), process(t)
	b, err := manager.NewBarrier(ctx, m, 2)
	closing(t, b, err)
	ready, err := ipc.NewQueue[int](1)
	closing(t, ready, err)
	waited := make(chan error, 1)
	go func() { _, err := b.Wait(ctx); waited <- err }()
	for n := 0; n == 0 && ctx.Err() == nil; {
		n, err = b.Waiting(ctx)
		testutil.NoError(t, err)
	}
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	p := act.Go(g, actor{b, ready.Sender()})
	pid, err := ready.Get(ctx)
	testutil.NoError(t, err)
	testutil.NoError(t, p.Kill())
	err = <-waited
	var owner *arena.PeerError
	if !errors.Is(err, manager.ErrBroken) || !errors.As(err, &owner) || owner.PID != pid {
		t.Errorf("%v does not say that process %d broke it", err, pid)
	}
}
