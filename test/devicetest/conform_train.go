package devicetest

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// empty returns an uninitialized tensor on dev. It fails t if dev returns an error.
func empty(t *testing.T, dev tensor.Device, dt tensor.DType, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.On(dev).Empty(dt, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func windows(t *testing.T, dev tensor.Device) {
	ref, g := New("reference"), tensor.NewGenerator(6)
	for _, w := range []device.Window{
		{Size: [2]int{2, 2}, Stride: [2]int{2, 2}}, {Size: [2]int{5, 5}, Stride: [2]int{1, 1}},
		{Size: [2]int{3, 3}, Stride: [2]int{1, 1}, Padding: [2]int{1, 1}},
		{Size: [2]int{3, 2}, Stride: [2]int{2, 3}, Padding: [2]int{1, 0}}, {Size: [2]int{1, 1}, Stride: [2]int{2, 1}},
	} {
		for _, dt := range floats {
			t.Run(fmt.Sprint(w, dt), func(t *testing.T) {
				const n, c, h, wide = 2, 3, 9, 8
				outH, outW := w.Out(h, wide)
				rows, places := c*w.Size[0]*w.Size[1], outH*outW
				images := tensor.RandN(dt, g, n, c, h, wide)
				images.Slice(3, 0, wide, 2).CopyFrom(images.Slice(3, 1, wide, 2)) // some are equal
				type results struct{ columns, folded, pooled, at *tensor.Tensor }
				on := func(d tensor.Device) results {
					k, x := ComputerOn(d), On(t, d, images)
					r := results{empty(t, d, dt, n, rows, places), empty(t, d, dt, n, c, h, wide),
						empty(t, d, dt, n*c, places), empty(t, d, tensor.Int64, n*c, places)}
					testutil.NoError(t, k.Unfold(OperandOf(r.columns), OperandOf(x), w))
					testutil.NoError(t, k.Fold(OperandOf(r.folded), OperandOf(r.columns), w))
					if 2*w.Padding[0] <= w.Size[0] && 2*w.Padding[1] <= w.Size[1] {
						testutil.NoError(t,
							k.MaxPool(OperandOf(r.pooled), OperandOf(r.at), OperandOf(x.View(n*c, h, wide)), w))
					} else {
						r.pooled.Zero()
						r.at.Zero()
					}
					return r
				}
				got, want := on(dev), on(ref)
				Same(t, got.columns, near(t, want.columns), 0)
				Same(t, got.folded, near(t, want.folded), 1e-5)
				Same(t, got.pooled, near(t, want.pooled), 0)
				Same(t, got.at, near(t, want.at), 0)
			})
		}
	}
}

func near(t *testing.T, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	h, err := x.CPU()
	testutil.NoError(t, err)
	return h
}

func optimizers(t *testing.T, dev tensor.Device) {
	g := tensor.NewGenerator(7)
	for _, s := range []device.Descent{
		{Rule: device.DescendSGD, LR: 0.1}, {Rule: device.DescendSGD, LR: 0.1, WeightDecay: 0.2},
		{Rule: device.DescendSGD, LR: 0.1, Momentum: 0.9, Dampening: 0.1, WeightDecay: 0.01},
		{Rule: device.DescendSGD, LR: 0.1, Momentum: 0.9, Nesterov: true, WeightDecay: 0.1},
		{Rule: device.DescendAdam, LR: 0.01, Beta1: 0.9, Beta2: 0.99, Eps: 0.1, WeightDecay: 0.1},
		{Rule: device.DescendAdam, LR: 0.01, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1, Decoupled: true},
		{Rule: device.DescendAdam, LR: 0.01, Beta1: 0.9, Beta2: 0.5, Eps: 1e-8, AMSGrad: true},
		{Rule: device.DescendAdam, LR: -0.01, Beta1: 0.9, Beta2: 0.5, Eps: 1e-8, WeightDecay: -0.1,
			Decoupled: true, AMSGrad: true},
		{Rule: device.DescendAdagrad, LR: 0.1, LRDecay: 0.3, Eps: 1e-8},
		{Rule: device.DescendAdagrad, LR: 0.1, WeightDecay: 0.2, Eps: 0.1},
		{Rule: device.DescendRMSprop, LR: 0.01, Beta2: 0.99, Eps: 0.1},
		{Rule: device.DescendRMSprop, LR: 0.01, Beta2: 0.9, Eps: 1e-8, Momentum: 0.5},
		{Rule: device.DescendRMSprop, LR: 0.01, Beta2: 0.99, Eps: 1e-8, Centered: true},
		{Rule: device.DescendRMSprop, LR: 0.01, Beta2: 0.99, Eps: 0.01, WeightDecay: 0.1, Momentum: 0.5,
			Centered: true},
	} {
		for _, dt := range floats {
			for _, atomic := range []bool{false, true} {
				s.Atomic = atomic
				t.Run(fmt.Sprintf("%+v %v", s, dt), func(t *testing.T) {
					for skip := range 2 { // whole vectors, and none
						const size = 1007
						params, grads := tensor.RandN(dt, g, size+skip).Narrow(0, skip, size),
							tensor.RandN(dt, g, size, 3)
						want := stepDescent(t, New("reference"), s, params, grads)
						for i, got := range stepDescent(t, dev, s, params, grads) {
							Same(t, got, near(t, want[i]),
								map[tensor.DType]float64{tensor.Float32: 1e-5, tensor.Float64: 1e-13}[dt])
						}
					}
				})
			}
		}
	}
	whole := empty(t, dev, tensor.Int64, 4)
	if err := ComputerOn(dev).Descend(device.Descent{}, OperandOf(whole),
		OperandOf(whole)); !errors.Is(err, tensor.ErrUnsupported) {
		t.Errorf("a step of integers: %v", err)
	}
}

// stepDescent performs a step of s for each column of grads. It returns the parameters after
// them, followed by the tensors of the optimizer's state, on dev.
func stepDescent(t *testing.T, dev tensor.Device, s device.Descent, params, grads *tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	all := []*tensor.Tensor{On(t, dev, params)}
	var state []operand
	start, n := 0., map[device.DescentRule]int{device.DescendAdam: 2, device.DescendRMSprop: 3,
		device.DescendAdagrad: 1}[s.Rule]
	if s.AMSGrad {
		n = 3
	}
	if s.Rule == device.DescendSGD && s.Momentum != 0 {
		start, n = math.NaN(), 1 // must not be read before the first step
	}
	for range n {
		x := On(t, dev, tensor.Full(params.DType(), start, params.Dim(0)))
		all, state = append(all, x), append(state, OperandOf(x))
	}
	for i := range grads.Dim(1) {
		s.N = int64(i + 1)
		grad := On(t, dev, grads.Select(1, i).Clone())
		testutil.NoError(t, ComputerOn(dev).Descend(s, OperandOf(all[0]), OperandOf(grad), state...))
	}
	return all
}
