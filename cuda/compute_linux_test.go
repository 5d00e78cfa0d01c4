package cuda_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/dl"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// collected waits until the garbage collector has taken all tensors, and only blocks of segments
// are left.
func collected(t *testing.T, segments int) {
	t.Helper()
	eventually(t, func() string {
		runtime.GC()
		if arena.Current().Stats().Blocks <= segments {
			return "collected"
		}
		return "tensors are left"
	}, "collected")
}

func TestDevice_ComputesWhatTheHostDoes(t *testing.T) {
	if raceEnabled {
		t.Skip("an interpreter of kernels takes minutes with the race detector, which has seen its threads in its " +
			"own tests")
	}
	t.Setenv(cuda.BLASKey, "none")
	dev := onDevice(t)
	if name, err := dev.(*cuda.Device).BLAS(); name != "" || !errors.Is(err, cuda.ErrUnavailable) {
		t.Errorf("products are by %q, %v", name, err)
	}
	devicetest.Conform(t, dev)
	collected(t, 1)
}

func TestBLAS_SaysWhyItIsNotThere(t *testing.T) {
	for name, want := range map[string]error{"none": nil, "/there/is/none.so": dl.ErrNotLoaded,
		"libc.so.6": dl.ErrNoSymbol} {
		t.Setenv(cuda.BLASKey, name)
		if err := cuda.LoadBLAS(); !errors.Is(err, cuda.ErrUnavailable) || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The products of matrices in many layouts are those of cuBLAS, which sees rows as columns.
func TestBLAS_MultipliesWhereItIs(t *testing.T) {
	dev := onDevice(t)
	switch name, err := dev.(*cuda.Device).BLAS(); {
	case *real && errors.Is(err, cuda.ErrUnavailable):
		t.Skip(err)
	case err != nil || !*real && name != "simulated cuBLAS":
		t.Fatal(name, err)
	}
	g := tensor.NewGenerator(1)
	for dt, tolerance := range map[tensor.DType]float64{tensor.Float32: 1e-5, tensor.Float64: 1e-5,
		tensor.Float16: 2e-3, tensor.BFloat16: 2e-2} {
		for _, shape := range [][4]int{{1, 3, 4, 5}, {2, 1, 7, 1}, {3, 7, 1, 2}, {2, 1, 1, 9}, {1, 4, 0, 3}} {
			for turns := range 4 {
				a, b := tensor.RandN(dt, g, shape[0], shape[1], shape[2]),
					tensor.RandN(dt, g, shape[0], shape[2], shape[3])
				if turns&1 != 0 {
					a = a.Transpose(1, 2).Contiguous().Transpose(1, 2)
				}
				if turns&2 != 0 {
					b = b.Transpose(1, 2).Contiguous().Transpose(1, 2)
				}
				got := tensor.MatMul(devicetest.On(t, dev, a), devicetest.On(t, dev, b))
				devicetest.Same(t, got, tensor.MatMul(a, b), tolerance)
				all := devicetest.On(t, dev, tensor.Ones(dt, 1, 3, 2)) // a batch of one matrix
				testutil.NoError(t, devicetest.ComputerOn(dev).MatMul(devicetest.OperandOf(all),
					devicetest.OperandOf(devicetest.On(t, dev, tensor.Ones(dt, 1, 3, 5))),
					devicetest.OperandOf(devicetest.On(t, dev, tensor.Ones(dt, 1, 5, 2))), 2))
				devicetest.Same(t, all, tensor.Full(dt, 7, 1, 3, 2), 0)
			}
		}
	}
	collected(t, 1)
}

// cuBLAS reads 16 bits as they are, so no kernel converts the operands or the product. On an H100
// the way by float32 took 2.77 ms for 4096 rows and columns, where PyTorch takes 0.18.
func TestBLAS_MultipliesHalvesAsTheyAre(t *testing.T) {
	simulate(t, 1, 64*mib)
	dev, g := device(t, "cuda"), tensor.NewGenerator(1)
	for _, dt := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
		a, b := tensor.RandN(dt, g, 3, 4), tensor.RandN(dt, g, 4, 5)
		there, other := devicetest.On(t, dev, a), devicetest.On(t, dev, b)
		before := cuda.Simulator().Open().Modules
		got := tensor.MatMul(there, other)
		if after := cuda.Simulator().Open().Modules; after != before {
			t.Errorf("a product of %v loaded %d kernels", dt, after-before)
		}
		devicetest.Same(t, got, tensor.MatMul(a, b), 2e-2)
	}
	collected(t, 1)
}
