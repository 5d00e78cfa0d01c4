package ipc_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// forwarding has a victim pass on what it gets, and make more of its own.
type forwarding struct {
	In  *ipc.Receiver[*tensor.Tensor]
	Out *ipc.Sender[*tensor.Tensor]
}

// forwarder gives away one tensor of its own and one that it got, without end.
var forwarder = newRole("forwarder", func(ctx context.Context, f *forwarding) error {
	for i := 0; ; i++ {
		x, err := tensor.EmptyShared(tensor.Int64, 8)
		if err != nil {
			return err
		}
		if err := f.Out.Put(ctx, x.Fill(float64(i)).Give()); err != nil {
			return err
		}
		if x, err = f.In.Get(ctx); err != nil {
			return err
		}
		if err := f.Out.Put(ctx, x.Give()); err != nil {
			return err
		}
	}
})

// TestGive_FromAProcessThatIsKilled has a tensor in at most one process's hands whenever the victim
// is killed: nothing is lost that was put, and nothing is left.
func TestGive_FromAProcessThatIsKilled(t *testing.T) {
	d := shared(t)
	ctx := testutil.Context(t)
	moved := 0
	for range 20 {
		in, out := newQueue[*tensor.Tensor](t, 4), newQueue[*tensor.Tensor](t, 4)
		cmd := forwarder.start(t, d, &forwarding{in.Receiver(), out.Sender()})
		testutil.NoError(t, errors.Join(in.Receiver().Close(), out.Sender().Close())) // the victim has the last ones
		give := func(x *tensor.Tensor) bool {
			switch err := in.Sender().Put(ctx, x.Give()); {
			case errors.Is(err, ipc.ErrClosed):
				testutil.NoError(t, x.Close())
				return false
			default:
				testutil.NoError(t, err)
				return true
			}
		}
		x, err := tensor.EmptyShared(tensor.Int64, 8)
		testutil.NoError(t, err)
		going := give(x.Fill(-1))
		for left := rand.IntN(300); ; left-- {
			got, err := out.Receiver().Get(ctx)
			if errors.Is(err, ipc.ErrClosed) {
				break
			}
			testutil.NoError(t, err)
			for _, v := range tensor.Data[int64](got) {
				if v != tensor.At[int64](got, 0) {
					t.Fatalf("%v has parts of two tensors", got)
				}
			}
			if left == 0 {
				testutil.NoError(t, cmd.Process.Kill())
			}
			if going && moved%2 == 0 {
				going = give(got)
			} else {
				testutil.NoError(t, got.Close())
			}
			moved++
		}
		if cmd.Wait() == nil {
			t.Fatal("the victim ended by itself")
		}
		testutil.NoError(t, errors.Join(in.Close(), out.Close()))
		settled(t, d)
	}
	if moved < 20 {
		t.Errorf("%d tensors came", moved)
	}
}
