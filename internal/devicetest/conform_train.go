package devicetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
)

// empty returns a tensor on dev, which holds anything.
func empty(t *testing.T, dev tensor.Device, dt tensor.DType, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.EmptyOn(dev, dt, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func windows(t *testing.T, dev tensor.Device) {
	ref, g := New("reference"), tensor.NewGenerator(6)
	for _, w := range []tensor.Window{
		{Size: [2]int{2, 2}, Stride: [2]int{2, 2}}, {Size: [2]int{5, 5}, Stride: [2]int{1, 1}}, {Size: [2]int{3, 3}, Stride: [2]int{1, 1}, Padding: [2]int{1, 1}},
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
					k, x := d.(tensor.Computer), On(t, d, images)
					r := results{empty(t, d, dt, n, rows, places), empty(t, d, dt, n, c, h, wide), empty(t, d, dt, n*c, places), empty(t, d, tensor.Int64, n*c, places)}
					check(t, k.Unfold(r.columns.Operand(), x.Operand(), w))
					check(t, k.Fold(r.folded.Operand(), r.columns.Operand(), w))
					if 2*w.Padding[0] <= w.Size[0] && 2*w.Padding[1] <= w.Size[1] {
						check(t, k.MaxPool(r.pooled.Operand(), r.at.Operand(), x.View(n*c, h, wide).Operand(), w))
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
	h, err := x.Cpu()
	check(t, err)
	return h
}

func optimizers(t *testing.T, dev tensor.Device) {
	ref, g := New("reference"), tensor.NewGenerator(7)
	states := map[tensor.DescentRule]int{tensor.DescendSGD: 1, tensor.DescendAdam: 2, tensor.DescendRMSprop: 3}
	for _, s := range []tensor.Descent{
		{Rule: tensor.DescendSGD, LR: 0.1}, {Rule: tensor.DescendSGD, LR: 0.1, WeightDecay: 0.2},
		{Rule: tensor.DescendSGD, LR: 0.1, Momentum: 0.9, Dampening: 0.1, WeightDecay: 0.01},
		{Rule: tensor.DescendSGD, LR: 0.1, Momentum: 0.9, Nesterov: true},
		{Rule: tensor.DescendAdam, LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.1},
		{Rule: tensor.DescendAdam, LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.1, Decoupled: true},
		{Rule: tensor.DescendRMSprop, LR: 0.01, Beta2: 0.99, Eps: 1e-8},
		{Rule: tensor.DescendRMSprop, LR: 0.01, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1, Momentum: 0.5, Centered: true},
	} {
		for _, dt := range floats {
			for _, atomic := range []bool{false, true} {
				s.Atomic = atomic
				t.Run(fmt.Sprintf("%+v %v", s, dt), func(t *testing.T) {
					const size = 1009
					params := tensor.RandN(dt, g, size)
					grads := tensor.RandN(dt, g, 3, size)
					on := func(d tensor.Device) []*tensor.Tensor {
						all := []*tensor.Tensor{On(t, d, params)}
						var room []tensor.Operand
						n := states[s.Rule]
						if s.Rule == tensor.DescendSGD && s.Momentum == 0 {
							n = 0
						}
						for range n {
							x := On(t, d, tensor.New(dt, size))
							all, room = append(all, x), append(room, x.Operand())
						}
						for i := range 3 {
							step := s
							step.N = int64(i + 1)
							check(t, d.(tensor.Computer).Descend(step, all[0].Operand(), On(t, d, grads.Select(0, i)).Operand(), room...))
						}
						return all
					}
					want := on(ref)
					for i, got := range on(dev) {
						Same(t, got, near(t, want[i]), 1e-5)
					}
				})
			}
		}
	}
	whole := empty(t, dev, tensor.Int64, 4)
	if err := dev.(tensor.Computer).Descend(tensor.Descent{}, whole.Operand(), whole.Operand()); !errors.Is(err, tensor.ErrUnsupported) {
		t.Errorf("a step of integers: %v", err)
	}
}
