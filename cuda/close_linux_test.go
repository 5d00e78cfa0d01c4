package cuda_test

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A process that goes on without devices, or whose context another library keeps, has nothing of
// them left: kernels and cuBLAS's handle are not given back by the end of a context alone.
func TestClose_GivesBackKernelsAndProducts(t *testing.T) {
	dev := simulated(t)
	s := cuda.Simulator()
	for range 2 { // after Close the next call begins anew
		x, err := tensor.On(dev).Ones(tensor.Float32, 4, 4)
		testutil.NoError(t, err)
		sum := tensor.Add(x, x)
		product := tensor.MatMul(sum, x)
		if got := onHost(t, product); got[0] != 8 {
			t.Errorf("a product: %v", got)
		}
		if open := s.Open(); open.Modules == 0 || open.BLAS != 1 || open.Contexts != 1 || open.Streams == 0 {
			t.Errorf("open are %+v: the test has made no kernel, or no product", open)
		}
		for _, c := range []*tensor.Tensor{x, sum, product} {
			testutil.NoError(t, c.Close())
		}
		testutil.NoError(t, cuda.Close())
		if open := s.Open(); open != (sim.Open{}) {
			t.Errorf("open after Close are %+v", open)
		}
		dev = device(t, "cuda")
		s = cuda.Simulator()
	}
}

// A device of before Close, and what was made of it, is an error: to the driver its streams and
// events are nothing any more, and a context that it made again nobody would end.
func TestClose_EndsDevicesThatAreKept(t *testing.T) {
	dev := simulated(t).(*cuda.Device)
	s := cuda.Simulator()
	stream, err := dev.NewStream()
	testutil.NoError(t, err)
	event, err := stream.Record()
	testutil.NoError(t, err)
	testutil.NoError(t, cuda.Close())
	_, asked := event.Done()
	_, made := tensor.On(dev).Zeros(tensor.Float32, 1)
	for what, err := range map[string]error{"a tensor": made, "a stream's end": stream.Close(), "an event": asked,
		"a wait": dev.Synchronize()} {
		if !errors.Is(err, cuda.ErrUnavailable) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
	if n := s.Open().Contexts; n != 0 {
		t.Errorf("%d contexts are left", n)
	}
	x, err := tensor.On(device(t, "cuda")).Zeros(tensor.Float32, 1) // of the device as Close left it
	testutil.NoError(t, err)
	testutil.NoError(t, x.Close())
}

// A pattern of eight bytes, as of a float64, is repeated on the device, and so is one of sixteen.
// The host builds nothing of the tensor's size.
func TestMemory_AWidePatternIsRepeatedOnTheDevice(t *testing.T) {
	const n = 8 * mib
	dev := onDevice(t).(*cuda.Device)
	for dt, pattern := range map[tensor.DType][]uint64{tensor.Float64: {math.Float64bits(math.E)},
		tensor.Complex128: {math.Float64bits(math.E), math.Float64bits(math.Pi)}} {
		x, err := tensor.On(dev).Ones(dt, n/dt.Size())
		testutil.NoError(t, err)
		var bytes []byte
		for _, word := range pattern {
			bytes = binary.NativeEndian.AppendUint64(bytes, word)
		}
		m := cuda.MemoryOf(x)
		testutil.NoError(t, errors.Join(m.Fill(0, 16, bytes), dev.Synchronize())) // the kernel is there from now on
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		testutil.NoError(t, errors.Join(m.Fill(16, n-16, bytes), dev.Synchronize()))
		runtime.ReadMemStats(&after)
		if built := after.TotalAlloc - before.TotalAlloc; built > n/2 {
			t.Errorf("%v: the host took %d bytes to fill %d", dt, built, n)
		}
		got := make([]byte, n)
		testutil.NoError(t, m.Read(got, 0))
		for i := 0; i < n; i += 8 {
			if want := pattern[i/8%len(pattern)]; binary.NativeEndian.Uint64(got[i:]) != want {
				t.Fatalf("%v: byte %d is of %#x, want %#x", dt, i, binary.NativeEndian.Uint64(got[i:]), want)
			}
		}
		testutil.NoError(t, x.Close())
	}
}
