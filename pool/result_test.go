package pool_test

import (
	"context"
	"errors"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/test/testutil"
)

var lengthOf = pool.Register("lengthOf", func(_ context.Context, b []byte) (int, error) { return len(b), nil })

// waitAtGate keeps a worker from getting tasks.
var waitAtGate = pool.RegisterInit("waitAtGate", func(ctx context.Context, dir string) error {
	_, err := atGate(ctx, dir)
	return err
})

// A goroutine that learns that a task is over hands in the next one: also of a task that fits into
// a payload and, as is found when a worker is there to be given it, not into a message.
func TestThen_HandsInMore(t *testing.T) {
	dir := t.TempDir()
	p := open(t, pool.Options{Workers: 1, Initializer: waitAtGate(dir),
		Process: shoal.Options{Start: shoal.SpawnStart}})
	r := lengthOf.ApplyAsync(p, make([]byte, 64<<20-16))
	next := make(chan *pool.Result[int], 1)
	r.Then(func(_ int, err error) {
		if !errors.Is(err, codec.ErrTooLong) {
			t.Errorf("called with %v", err)
		}
		next <- square.ApplyAsync(p, 3)
	})
	openGate(t, dir)
	select {
	case r := <-next:
		if got := testutil.Value(r.Get(testutil.Context(t)))(t); got != 9 {
			t.Errorf("got %d", got)
		}
	case <-testutil.Context(t).Done():
		t.Fatal("the callback waits for ever")
	}
}
