package cuda_test

import (
	"context"
	"errors"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// giveBack gives each tensor that it gets to the next process.
var giveBack = shoal.Register("giveBack", func(ctx context.Context, _ int, e ends) error {
	x, err := e.In.Get(ctx)
	if err != nil {
		return err
	}
	x.AddScalar(1)
	return errors.Join(e.Out.Put(ctx, x.Give()), x.Close())
})

func TestDevice_GivenTensorsAreClosedAndArrive(t *testing.T) {
	onDevices(t, 1, 64*mib)
	ctx := watched(t)
	in, err := ipc.NewQueue[*tensor.Tensor](1)
	check(t, err)
	out, err := ipc.NewQueue[*tensor.Tensor](1)
	check(t, err)
	x, err := tensor.On(device(t, "cuda")).Zeros(tensor.Float32, 5)
	check(t, err)
	check(t, in.Put(ctx, x.Give()))
	if err := in.TryPut(x); !errors.Is(err, tensor.ErrClosed) {
		t.Errorf("a tensor that was given is not closed: %v", err)
	}
	check(t, giveBack.Spawn(ctx, 1, ends{in.Receiver(), out.Sender()}))
	y, err := out.Get(ctx)
	check(t, err)
	here, err := y.CPU()
	check(t, err)
	if s := tensor.Data[float32](here); len(s) != 5 || s[0] != 1 || s[4] != 1 {
		t.Errorf("%v arrived", s)
	}
	check(t, errors.Join(y.Close(), in.Close(), out.Close()))
}
