package ipc_test

import (
	"runtime"
	"testing"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/ipc"
)

func collect() { runtime.GC() }

func TestAPipeGoesBothWays(t *testing.T) {
	each(t, func(t *testing.T, d *shm.Domain) {
		ctx := watched(t)
		a, b, err := ipc.Pipe[int, string]()
		check(t, err)
		defer a.Close()
		defer b.Close()
		check(t, a.Send(ctx, 1))
		check(t, b.Send(ctx, "one"))
		check(t, b.Poll(ctx))
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
		wantErr(t, err, ipc.ErrEmpty)
	})
}

func TestAPipeEndsAfterItIsDrained(t *testing.T) {
	each(t, func(t *testing.T, d *shm.Domain) {
		ctx := watched(t)
		a, b, err := ipc.Pipe[int, int]()
		check(t, err)
		defer b.Close()
		check(t, a.Send(ctx, 1))
		check(t, a.Close())
		check(t, a.Close())
		wantErr(t, b.Send(ctx, 2), ipc.ErrClosed)
		check(t, b.Poll(ctx))
		if v, err := b.Recv(ctx); v != 1 || err != nil {
			t.Error(v, err)
		}
		check(t, b.Poll(ctx))
		_, err = b.Recv(ctx)
		wantErr(t, err, ipc.ErrClosed)
	})
}

func TestAFullPipeSaysSo(t *testing.T) {
	each(t, func(t *testing.T, d *shm.Domain) {
		a, b, err := ipc.Pipe[int, int]()
		check(t, err)
		defer a.Close()
		defer b.Close()
		for err = nil; err == nil; err = a.TrySend(1) {
		}
		wantErr(t, err, ipc.ErrFull)
	})
}
