package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A user is a process, and its context of the first device.
type user struct {
	Process int
	Context uint64
	Others  int // contexts that it has besides
	Refused bool
}

// useContext adds one to a tensor, and tries to enter another process's context.
var useContext = pool.Register2("useContext",
	func(_ context.Context, theirs uint64, x *tensor.Tensor) (u user, err error) {
		defer x.Close()
		one, err := tensor.On(x.Device()).Ones(x.DType(), 1)
		if err != nil {
			return u, err
		}
		defer one.Close()
		x.AddAtomic(one)
		own, err := cuda.Context(x.Device().(*cuda.Device))
		if err != nil {
			return u, err
		}
		err = cuda.Enter(theirs)
		u = user{os.Getpid(), own, cuda.Simulator().Open().Contexts - 1, errors.Is(err, cuda.ErrorInvalidContext)}
		return u, x.Device().(*cuda.Device).Synchronize()
	})

// Each worker of a pool has one context, which it keeps from task to task; another's is refused.
func TestDevice_EachProcessHasAContextOfItsOwn(t *testing.T) {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart} {
		t.Run(m.String(), func(t *testing.T) { ownContexts(t, m) })
	}
}

func ownContexts(t *testing.T, m shoal.StartMethod) {
	simulate(t, 1, 256*mib)
	ctx := testutil.Context(t)
	dev := device(t, "cuda").(*cuda.Device)
	x, err := tensor.On(dev).Zeros(tensor.Float32, 1)
	testutil.NoError(t, err)
	ours, err := cuda.Context(dev)
	testutil.NoError(t, err)
	// one that waited in the domain of another test is of no use
	kind := shoal.Options{Start: m, Env: []string{fmt.Sprintf("IN_DOMAIN=%x", arena.Current().Token())}}
	p, err := pool.New(ctx, pool.Options{Workers: 2, Process: kind})
	testutil.NoError(t, err)
	const tasks = 12
	users := map[int]uint64{os.Getpid(): ours}
	for range tasks {
		u, err := useContext.Apply(ctx, p, ours, x)
		testutil.NoError(t, err)
		if had, again := users[u.Process]; again && had != u.Context || u.Others != 0 || !u.Refused ||
			u.Context == ours {
			t.Errorf("%+v, after context %x; ours is %x", u, had, ours)
		}
		users[u.Process] = u.Context
	}
	contexts := map[uint64]bool{}
	for _, c := range users {
		contexts[c] = true
	}
	if len(contexts) != len(users) {
		t.Errorf("%d processes have %d contexts", len(users), len(contexts))
	}
	testutil.NoError(t, p.Close())
	if m == shoal.WarmStart {
		testutil.NoError(t, shoal.Warm(ctx, 1, kind)) // no successor is started any more, when the domain is closed
	}
	if got := onHost(t, x); got[0] != tasks {
		t.Errorf("%v after %d tasks", got, tasks)
	}
	testutil.NoError(t, x.Close())
}
