package data_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// pictures are 10 samples: of uint8, a label, and where they came from on the host.
func pictures() (pixels, labels, numbers *tensor.Tensor) {
	g := tensor.NewGenerator(1)
	return tensor.RandInt(g, 0, 256, 10, 3, 4).To(tensor.Uint8), tensor.RandInt(g, 0, 10, 10),
		tensor.Arange(tensor.Int64, 0, 10, 1)
}

// there is a set of images on a device, but for their numbers.
func there(t *testing.T, dev tensor.Device) *data.TensorDataset {
	pixels, labels, numbers := pictures()
	return data.NewTensorDataset(devicetest.On(t, dev, pixels), devicetest.On(t, dev, labels), numbers)
}

// batchesOnADevice are those of the host, whatever loads them, and stay on the device.
func batchesOnADevice(t *testing.T, dev tensor.Device) {
	pixels, labels, _ := pictures()
	normal := data.Compose(data.ToTensor, data.Normalize(0.5, 0.25))
	turned := data.TransformFunc(
		func(_, x *tensor.Tensor) *tensor.Tensor { return tensor.Flip(x.Narrow(-2, 1, 2), -1) })
	for name, o := range map[string]data.Options{
		"in order":     {BatchSize: 4},
		"shuffled":     {BatchSize: 4, Shuffle: true, Seed: 3},
		"goroutines":   {BatchSize: 4, Shuffle: true, Workers: 2},
		"auto":         {BatchSize: 4, Workers: 2, Kind: data.Auto},
		"pinned":       {BatchSize: 4, PinMemory: true},
		"shared":       {BatchSize: 4, Shared: true},
		"transformed":  {BatchSize: 4, Transform: normal},
		"of one's own": {BatchSize: 4, Workers: 2, Transform: data.Compose(data.ToTensor, turned)},
		"one by one":   {BatchSize: data.Single},
		"of a subset":  {BatchSize: 3},
		"of a rank":    {BatchSize: 3, Shuffle: true, Rank: 1, World: 2},
		"with a stack": {BatchSize: 4, Collate: pairs},
	} {
		t.Run(name, func(t *testing.T) {
			set := there(t, dev)
			var ds data.Dataset = set
			want := 10
			switch name {
			case "of a subset":
				ds, want = data.NewSubset(set, []int{9, 2, 2, 0, 5}), 5
			case "of a rank":
				want = 5
			}
			l := data.NewLoader(ds, o)
			n := 0
			for b, err := range l.Batches(t.Context()) {
				testutil.NoError(t, err)
				if b[0].Device() != dev || b[1].Device() != dev || b[2].Device() != nil {
					t.Fatalf("on %v, %v and %v", b[0].Device(), b[1].Device(), b[2].Device())
				}
				rows := b[2].Reshape(-1)
				wantPixels, wantLabels := tensor.IndexSelect(pixels, 0, rows), tensor.IndexSelect(labels, 0, rows)
				if o.Transform != nil {
					wantPixels = o.Transform.Apply(nil, wantPixels)
				}
				devicetest.Same(t, b[0], wantPixels.Reshape(b[0].Shape()...), 1e-6)
				devicetest.Same(t, b[1], wantLabels.Reshape(b[1].Shape()...), 0)
				n += rows.Numel()
				if o.Shared {
					for _, f := range b {
						testutil.NoError(t, f.Close())
					}
				}
			}
			if n != want {
				t.Errorf("%d samples", n)
			}
			testutil.NoError(t, errors.Join(l.Close(), set.Close()))
		})
	}
}

func TestTensorDataset_OnADeviceStaysThere(t *testing.T) {
	batchesOnADevice(t, devicetest.New("test:0"))
}

func TestTensorDataset_OnAGPUStaysThere(t *testing.T) {
	devices, err := sim.Create(1, 64<<20)
	testutil.NoError(t, err)
	testutil.NoError(t, cuda.Close()) // others may have asked, and there were none
	t.Setenv(cuda.SimulateKey, devices.Paths()[0])
	domain, err := arena.New(arena.Options{Budget: 16 << 20})
	testutil.NoError(t, err)
	before := arena.Current()
	arena.SetDefault(domain)
	dev, err := tensor.ParseDevice("cuda")
	testutil.NoError(t, err)
	batchesOnADevice(t, dev)
	// what a Collate has made, and the memory of transforms
	testutil.EventuallyNoError(t, func() error {
		testutil.NoError(t, tensor.EmptyCache())
		used, err := devices.Used(0)
		testutil.NoError(t, err)
		if used != 0 {
			return fmt.Errorf("%d bytes are left on the device", used)
		}
		return nil
	})
	arena.SetDefault(before)
	testutil.NoError(t, errors.Join(cuda.Close(), domain.Close(), devices.Close()))
}

func TestTensorDataset_OnADeviceIsNotForProcesses(t *testing.T) {
	set := there(t, devicetest.New("test:0"))
	for name, ds := range map[string]data.Dataset{
		"a set": set, "part of one": data.NewSubset(set, []int{1}), "two": data.NewConcatDataset(set, set),
		"side by side": data.NewStackDataset(set, set),
	} {
		l := data.NewLoader(ds, data.Options{Workers: 1, Kind: data.Processes})
		var errs []error
		for _, err := range l.Batches(t.Context()) {
			errs = append(errs, err)
		}
		if len(errs) != 1 || !errors.Is(errs[0], data.ErrPlace) {
			t.Errorf("%s: %v", name, errs)
		}
		testutil.NoError(t, l.Close())
	}
	testutil.NoError(t, set.Close())
}

func TestStack_RefusesASampleOnAnotherDevice(t *testing.T) {
	pixels, _, _ := pictures()
	near := data.NewTensorDataset(pixels)
	far := data.NewTensorDataset(devicetest.On(t, devicetest.New("test:0"), pixels))
	samples := slices.Concat(first(t, near), first(t, far))
	if _, err := data.Stack([]data.Sample{samples[:1], samples[1:]}); !errors.Is(err, data.ErrShape) {
		t.Errorf("%v", err)
	}
}

func first(t *testing.T, ds data.Dataset) data.Sample {
	s, err := ds.Get(t.Context(), 0)
	testutil.NoError(t, err)
	return s
}

// A set moves as a whole or not at all.
func TestTensorDataset_MovesToADevice(t *testing.T) {
	pixels, labels, _ := pictures()
	dev := devicetest.New("test:0")
	set := data.NewTensorDataset(pixels.Clone(), labels.Clone())
	broken := errors.New("no room")
	dev.Fail(broken)
	if err := set.To(dev); !errors.Is(err, broken) || set.Tensors[0].Device() != nil || set.Tensors[1].Device() != nil {
		t.Errorf("%v, and the set is on %v and %v", err, set.Tensors[0].Device(), set.Tensors[1].Device())
	}
	dev.Fail(nil)
	for _, to := range []tensor.Device{dev, dev, nil, nil} {
		testutil.NoError(t, set.To(to))
		for k, want := range []*tensor.Tensor{pixels, labels} {
			if got := set.Tensors[k]; got.Device() != to {
				t.Errorf("on %v, want %v", got.Device(), to)
			} else {
				devicetest.Same(t, got, want, 0)
			}
		}
	}
	testutil.NoError(t, set.Close())
	if n := dev.Used(); n != 0 {
		t.Errorf("%d bytes are left on the device", n)
	}
}
