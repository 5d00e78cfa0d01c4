package cuda_test

import (
	"context"
	"errors"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// giveBack gives each tensor that it gets to the next process.
var giveBack = shoal.Register("giveBack", func(ctx context.Context, _ int, e ends) error {
	x, err := e.In.Get(ctx)
	if err != nil {
		return err
	}
	x.AddScalarInPlace(1)
	return errors.Join(e.Out.Put(ctx, x.Give()), x.Close())
})

func TestDevice_GivenTensorsAreClosedAndArrive(t *testing.T) {
	onDevices(t, 1, 64*mib)
	ctx := testutil.Context(t)
	in, err := ipc.NewQueue[*tensor.Tensor](1)
	testutil.NoError(t, err)
	out, err := ipc.NewQueue[*tensor.Tensor](1)
	testutil.NoError(t, err)
	x, err := tensor.On(device(t, "cuda")).Zeros(tensor.Float32, 5)
	testutil.NoError(t, err)
	testutil.NoError(t, in.Put(ctx, x.Give()))
	if err := in.TryPut(x); !errors.Is(err, tensor.ErrClosed) {
		t.Errorf("a tensor that was given is not closed: %v", err)
	}
	testutil.NoError(t, giveBack.Spawn(ctx, 1, ends{in.Receiver(), out.Sender()}))
	y, err := out.Get(ctx)
	testutil.NoError(t, err)
	here, err := y.CPU()
	testutil.NoError(t, err)
	if s := tensor.Data[float32](here); len(s) != 5 || s[0] != 1 || s[4] != 1 {
		t.Errorf("%v arrived", s)
	}
	testutil.NoError(t, errors.Join(y.Close(), in.Close(), out.Close()))
}
