package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestDevice_IsNamedAsPyTorchNamesIt(t *testing.T) {
	simulate(t, 2, 64*mib)
	if cuda.Available() != nil || cuda.Count() != 2 {
		t.Fatalf("%d devices, %v", cuda.Count(), cuda.Available())
	}
	testutil.NoError(t, cuda.SetDevice(1))
	for text, want := range map[string]string{"cuda:0": "cuda:0", "cuda:1": "cuda:1", "cuda": "cuda:1",
		"auto": "cuda:1"} {
		if d := device(t, text); d.String() != want {
			t.Errorf("%s is %v, want %s", text, d, want)
		}
	}
	if d := device(t, "cpu"); d != nil {
		t.Errorf("cpu is %v", d)
	}
	for _, text := range []string{"", "gpu", "mps"} {
		if d, err := tensor.ParseDevice(text); !errors.Is(err, tensor.ErrDevice) || d != nil {
			t.Errorf("%q is %v, %v", text, d, err)
		}
	}
	for _, text := range []string{"cuda:", "cuda:2", "cuda:-1", "cuda:01", "cuda:+1", "cuda:01",
		"cuda:-0", "cuda:x", "auto:1"} {
		if d, err := tensor.ParseDevice(text); !errors.Is(err, cuda.ErrDevice) || d != nil {
			t.Errorf("%q is %v, %v", text, d, err)
		}
	}
	if err := cuda.SetDevice(2); !errors.Is(err, cuda.ErrDevice) {
		t.Errorf("device 2 of 2: %v", err)
	}
	var turns []string
	for rank := range 5 {
		turns = append(turns, forRank(t, rank).String())
	}
	if want := []string{"cuda:0", "cuda:1", "cuda:0", "cuda:1", "cuda:0"}; !slices.Equal(turns, want) {
		t.Errorf("ranks have %v, want %v", turns, want)
	}
}

func TestAvailable_SaysWhyThereIsNone(t *testing.T) {
	t.Setenv(cuda.SimulateKey, "/dev/null")
	t.Setenv("CUDA_VISIBLE_DEVICES", "7")
	testutil.NoError(t, cuda.Reset())
	defer cuda.Reset()
	if cuda.Available() == nil || cuda.Count() != 0 {
		t.Error("there is one")
	}
	_, err := tensor.ParseDevice("cuda")
	if !errors.Is(err, cuda.ErrUnavailable) || !errors.Is(err, cudriver.ErrorNoDevice) ||
		!strings.Contains(err.Error(), `CUDA_VISIBLE_DEVICES is "7"`) {
		t.Errorf("%v", err)
	}
	if _, err := cuda.Get(0); !errors.Is(err, cuda.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// The host takes the place of devices that are not there, and of none that cannot be used.
func TestForRank_IsTheHostOnlyWhereNoDeviceIs(t *testing.T) {
	simulate(t, 2, 64*mib)
	paths := os.Getenv(cuda.SimulateKey)
	for name, c := range map[string]struct {
		paths, visible string
		fails          map[string]cudriver.Result
		want           error
	}{
		"no device":               {paths: "/dev/null"},
		"devices that are hidden": {paths: "/dev/null", visible: ""},
		"hidden by a number":      {paths: "/dev/null", visible: "-1"},
		"a list of others":        {paths: "/dev/null", visible: "7", want: cudriver.ErrorNoDevice},
		"a driver that does not fit": {paths: paths, fails: map[string]cudriver.Result{
			"cuInit": cudriver.ErrorSystemDriverMismatch}, want: cudriver.ErrorSystemDriverMismatch},
		"a device that has fallen off": {paths: paths, fails: map[string]cudriver.Result{
			"cuDeviceGetUuid_v2": cudriver.ErrorUnknown}, want: cudriver.ErrorUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			testutil.NoError(t, cuda.Reset())
			t.Setenv(cuda.SimulateKey, c.paths)
			if name != "no device" {
				t.Setenv("CUDA_VISIBLE_DEVICES", c.visible)
			}
			defer cuda.FailEach(c.fails)()
			_, auto := tensor.ParseDevice("auto")
			d, err := cuda.ForRank(1)
			if d != nil || !errors.Is(err, c.want) || !errors.Is(auto, c.want) ||
				c.want != nil && !errors.Is(err, cuda.ErrUnavailable) {
				t.Errorf("rank 1 has %v, %v; auto: %v", d, err, auto)
			}
			testutil.NoError(t, cuda.Reset())
		})
	}
	if _, err := cuda.ForRank(-1); !errors.Is(err, cuda.ErrDevice) {
		t.Errorf("rank -1: %v", err)
	}
}

func TestDevice_HasTensors(t *testing.T) {
	onDevices(t, 1, 64*mib)
	dev := device(t, "cuda")
	x := tensor.Arange(tensor.Float32, 0, 6, 1).View(2, 3)
	there, err := x.ToDevice(dev)
	testutil.NoError(t, err)
	defer there.Close()
	if there.Device() != dev || x.Device() != nil || !there.IsShared() {
		t.Errorf("on %v and %v", there.Device(), x.Device())
	}
	if want := "tensor([[0., 1., 2.],\n        [3., 4., 5.]], device='cuda:0')"; there.String() != want {
		t.Errorf("printed:\n%v\nwant:\n%s", there, want)
	}
	column := there.Select(1, 1)
	defer column.Close()
	if got := onHost(t, column); !slices.Equal(got, []float32{1, 4}) {
		t.Errorf("a column: %v", got)
	}
	turned := there.T()
	defer turned.Close()
	again, err := turned.ToDevice(nil)
	testutil.NoError(t, err)
	if got := tensor.Data[float32](again); !slices.Equal(got, []float32{0, 3, 1, 4, 2, 5}) {
		t.Errorf("turned: %v", got)
	}
	for _, dt := range []tensor.DType{tensor.Bool, tensor.Int8, tensor.Float16, tensor.Float32, tensor.Int64,
		tensor.Float64, tensor.Complex128} {
		one, err := tensor.On(dev).Ones(dt, 3, 2)
		testutil.NoError(t, err)
		seven := one.Select(0, 2)
		last := seven.Select(0, 1)
		if last.Item() != 1 {
			t.Errorf("%v: %v", dt, one)
		}
		for _, c := range []*tensor.Tensor{last, seven, one} {
			testutil.NoError(t, c.Close())
		}
	}
	empty, err := tensor.On(dev).Zeros(tensor.Float32, 0, 3)
	testutil.NoError(t, err)
	if s := empty.String(); s != "tensor([], device='cuda:0', size=(0, 3))" {
		t.Errorf("an empty one: %s", s)
	}
	testutil.NoError(t, empty.Close())
	func() {
		defer func() {
			if s := fmt.Sprint(recover()); !strings.Contains(s, "on cuda:0: copy it to the host with CPU") {
				t.Errorf("the elements of a tensor on a device: %v", s)
			}
		}()
		tensor.Data[float32](there)
	}()
}

func TestDevice_TensorsGoToAnother(t *testing.T) {
	onDevices(t, 2, 64*mib)
	x, err := tensor.On(device(t, "cuda:0")).Full(tensor.Float32, 2.5, 100)
	testutil.NoError(t, err)
	defer x.Close()
	every := x.Slice(0, 10, 90, 2)
	defer every.Close()
	y, err := every.ToDevice(device(t, "cuda:1"))
	testutil.NoError(t, err)
	defer y.Close()
	same, err := y.ToDevice(device(t, "cuda:1"))
	testutil.NoError(t, err)
	defer same.Close()
	if got := onHost(t, y); y.Device().String() != "cuda:1" || len(got) != 40 || got[39] != 2.5 ||
		!same.SameStorage(y) {
		t.Errorf("%v", y)
	}
}

func TestSegment_MemoryIsUsedAgain(t *testing.T) {
	devices := simulate(t, 1, 64*mib)
	dev := device(t, "cuda")
	big := func() (*tensor.Tensor, error) { return tensor.On(dev).Empty(tensor.Float32, 5*mib) } // 20 MiB
	var all []*tensor.Tensor
	for range 3 {
		x, err := big()
		testutil.NoError(t, err)
		all = append(all, x)
	}
	_, err := big()
	if !errors.Is(err, cuda.ErrorOutOfMemory) || !strings.Contains(err.Error(), "CUDA_ERROR_OUT_OF_MEMORY") {
		t.Errorf("a fourth of three: %v", err)
	}
	for range 10 {
		testutil.NoError(t, all[0].Close())
		all[0], err = big()
		testutil.NoError(t, err)
	}
	for _, x := range all {
		testutil.NoError(t, x.Close())
	}
	if n, err := devices.Used(0); n == 0 || err != nil {
		t.Errorf("%d bytes are kept for later, %v", n, err)
	}
	other, err := tensor.On(dev).Empty(tensor.Float32, 15*mib) // 60 MiB, so that what is kept has to go
	testutil.NoError(t, err)
	testutil.NoError(t, other.Close())
	testutil.NoError(t, cuda.EmptyCache())
	if n, err := devices.Used(0); n != 0 || err != nil || cuda.Mapped() != 0 {
		t.Errorf("%d bytes, %d segments are left, %v", n, cuda.Mapped(), err)
	}
}

func TestSegment_IsSharedBySmallAllocations(t *testing.T) {
	onDevices(t, 1, 64*mib)
	dev := device(t, "cuda")
	var all []*tensor.Tensor
	for i := range 1000 {
		x, err := tensor.On(dev).Full(tensor.Int32, float64(i), 10)
		testutil.NoError(t, err)
		all = append(all, x)
	}
	if n := cuda.Mapped(); n != 1 {
		t.Errorf("%d segments", n)
	}
	for i, x := range all {
		if one := x.Select(0, 9); one.Item() != float64(i) {
			t.Errorf("tensor %d holds %v", i, one.Item())
		} else {
			testutil.NoError(t, one.Close())
		}
		testutil.NoError(t, x.Close())
	}
}

func TestDevice_AnErrorHasTheDriversName(t *testing.T) {
	dev := simulated(t)
	x, err := tensor.On(dev).Zeros(tensor.Float32, 4)
	testutil.NoError(t, err)
	defer x.Close()
	cuda.Simulator().Fail("cuMemcpyDtoHAsync", 1, cudriver.ErrorNotPermitted)
	_, err = x.CPU()
	failed, ok := errors.AsType[*cudriver.Error](err)
	if !ok || failed.Call != "cuMemcpyDtoHAsync" || !errors.Is(err, cuda.ErrorNotPermitted) {
		t.Errorf("%v", err)
	}
}

func TestDevice_ThatAnotherProcessHasIsAnError(t *testing.T) {
	simulate(t, 1, 64*mib)
	dev := device(t, "cuda")
	cuda.Simulator().Take(true)
	if _, err := tensor.On(dev).Zeros(tensor.Float32, 1); !errors.Is(err, cuda.ErrorDeviceUnavailable) {
		t.Errorf("%v", err)
	}
	cuda.Simulator().Take(false)
	x, err := tensor.On(dev).Zeros(tensor.Float32, 1)
	testutil.NoError(t, err)
	testutil.NoError(t, x.Close())
}
