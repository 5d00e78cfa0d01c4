package cuda_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// wantPinned fails unless so many pieces of the host's memory are registered.
func wantPinned(t *testing.T, when string, want int) {
	t.Helper()
	if n, known := pinnedNow(); known && n != want {
		t.Errorf("%s: %d pieces of memory are registered, want %d", when, n, want)
	}
}

// pinnedNow counts the pieces of the host's memory that are registered, which a real driver does
// not tell.
func pinnedNow() (n int, known bool) {
	s := cuda.Simulator()
	if s == nil {
		return 0, false
	}
	return s.Open().Mappings - cuda.Mapped(), true
}

func TestPin_EndsBeforeItsBlockIsGivenBack(t *testing.T) {
	dev := simulated(t).(*cuda.Device)
	x, err := tensor.NewShared(tensor.Float32, 64, 32)
	testutil.NoError(t, err)
	row := x.Select(0, 1)
	testutil.NoError(t, errors.Join(x.PinMemory(), row.PinMemory(), x.PinMemory()))
	wantPinned(t, "a tensor, twice, and a part of it", 1)
	there, err := dev.Pin(x)
	testutil.NoError(t, err)
	wantPinned(t, "the device has it, too", 1)
	testutil.NoError(t, errors.Join(there.Close(), x.Close()))
	wantPinned(t, "a view is open", 1)
	testutil.NoError(t, row.Close())
	wantPinned(t, "all are closed", 0)

	small := tensor.Ones(tensor.Float32, 3)
	testutil.NoError(t, small.PinMemory())
	wantPinned(t, "less than a page", 0)
	testutil.NoError(t, small.Close())

	testutil.NoError(t, tensor.Ones(tensor.Float32, 5000).PinMemory())
	eventually(t, func() string {
		runtime.GC()
		if n, _ := pinnedNow(); n == 0 {
			return "unlocked"
		}
		return "locked"
	}, "unlocked")

	y := tensor.Ones(tensor.Float32, 5000)
	cuda.Simulator().Fail("cuMemHostRegister", 1, cudriver.ErrorOutOfMemory)
	if err := y.PinMemory(); !errors.Is(err, cuda.ErrorOutOfMemory) || errors.Is(err, tensor.ErrDevice) {
		t.Errorf("%v", err)
	}
	testutil.NoError(t, y.PinMemory())
	testutil.NoError(t, cuda.Close()) // unlocks what is left
	testutil.NoError(t, y.Close())
	device(t, "cuda")
	wantPinned(t, "begun anew", 0)
}

func TestPin_WithoutADeviceIsAnError(t *testing.T) {
	simulate(t, 1, 64*mib)
	t.Setenv(cuda.SimulateKey, "/dev/null")
	x := tensor.Ones(tensor.Float32, 5000)
	if err := x.PinMemory(); !errors.Is(err, tensor.ErrDevice) || !errors.Is(err, cuda.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	testutil.NoError(t, x.Close())
}

func TestPin_BatchesStayWhereTheyLie(t *testing.T) {
	dev := onDevice(t)
	loader := data.NewLoader(datasets.Digits(100, 1), data.Options{BatchSize: 32, Workers: 2, PinMemory: true})
	n := 0
	for batch, err := range loader.Batches(testutil.Context(t)) {
		testutil.NoError(t, err)
		const page = 4096 // what has none of its own is not locked
		if n, known := pinnedNow(); known && n == 0 && batch[0].Nbytes() >= page {
			t.Error("a batch is not pinned")
		}
		x, err := batch[0].ToDevice(dev)
		testutil.NoError(t, err)
		n += x.Dim(0)
		testutil.NoError(t, errors.Join(x.Close(), batch.Close()))
	}
	testutil.NoError(t, loader.Close())
	if n != 100 {
		t.Errorf("%d digits", n)
	}
	wantPinned(t, "the loader is closed", 0)
}
