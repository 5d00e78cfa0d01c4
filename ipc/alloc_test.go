//go:build !race

// The race detector makes sync.Pool drop values on purpose, so allocations are counted without it.

package ipc_test

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestQueue_PutAndGetAllocateOnlyTheValue(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		checkAllocs(t, 7, 0, func(int) {})
		checkAllocs(t, small{1, 2, 0.5, true}, 0, func(small) {})
		checkAllocs(t, make([]byte, 100), 1, func([]byte) {})
		checkAllocs(t, make([]byte, 64<<10), 1, func([]byte) {})
		b := newBlob(t, d, "x")
		checkAllocs(t, b, 2, func(b *blob) { b.Close() }) // the blob, and what its UnmarshalWire gives to OnDone
		testutil.NoError(t, b.Close())
	})
}

func checkAllocs[T any](t *testing.T, v T, want float64, done func(T)) {
	t.Helper()
	ctx, q := t.Context(), newQueue[T](t, 4)
	if n := testing.AllocsPerRun(200, func() {
		testutil.NoError(t, q.Put(ctx, v))
		got, err := q.Get(ctx)
		testutil.NoError(t, err)
		done(got)
	}); n > want {
		t.Errorf("%T: %v allocations, want %v", v, n, want)
	}
}
