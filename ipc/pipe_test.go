package ipc_test

import (
	"runtime"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

func collect() { runtime.GC() }

func TestPipe_GoesBothWays(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		a, b, err := ipc.Pipe[int, string]()
		testutil.NoError(t, err)
		defer a.Close()
		defer b.Close()
		testutil.NoError(t, a.Send(ctx, 1))
		testutil.NoError(t, b.Send(ctx, "one"))
		testutil.NoError(t, b.Poll(ctx))
		if b.Len() != 1 {
			t.Errorf("Len %d", b.Len())
		}
		if v, err := b.Recv(ctx); v != 1 || err != nil {
			t.Error(v, err)
		}
		if v, err := a.TryRecv(); v != "one" || err != nil {
			t.Error(v, err)
		}
		_, err = b.TryRecv()
		testutil.ErrorIs(t, err, ipc.ErrEmpty)
	})
}

func TestPipe_EndsAfterItIsDrained(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		a, b, err := ipc.Pipe[int, int]()
		testutil.NoError(t, err)
		defer b.Close()
		testutil.NoError(t, a.Send(ctx, 1))
		testutil.NoError(t, a.Close())
		testutil.NoError(t, a.Close())
		testutil.ErrorIs(t, b.Send(ctx, 2), ipc.ErrClosed)
		testutil.NoError(t, b.Poll(ctx))
		if v, err := b.Recv(ctx); v != 1 || err != nil {
			t.Error(v, err)
		}
		testutil.NoError(t, b.Poll(ctx))
		_, err = b.Recv(ctx)
		testutil.ErrorIs(t, err, ipc.ErrClosed)
	})
}

func TestPipe_ThatIsFullSaysSo(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		a, b, err := ipc.Pipe[int, int]()
		testutil.NoError(t, err)
		defer a.Close()
		defer b.Close()
		for err = nil; err == nil; err = a.TrySend(1) {
		}
		testutil.ErrorIs(t, err, ipc.ErrFull)
	})
}
