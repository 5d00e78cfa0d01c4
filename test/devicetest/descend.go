package devicetest

import (
	"fmt"
	"math"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// Descend implements [device.Computer]. All computations are in float64.
func (d *Device) Descend(s device.Descent, param, grad operand, state ...operand) error {
	if err := d.compute(); err != nil {
		return err
	}
	if param.DType != tensor.Float32 && param.DType != tensor.Float64 {
		return fmt.Errorf("%w: a step of %v", tensor.ErrUnsupported, param.DType)
	}
	p, g := numbers(d.see(param)), numbers(d.see(grad))
	var rooms [][]float64
	for _, o := range state {
		rooms = append(rooms, numbers(d.see(o)))
	}
	for i := range p {
		p[i] += descend(&s, p[i], g[i], func(k int) *float64 { return &rooms[k][i] })
	}
	d.see(param).CopyFrom(tensor.FromSlice(p, param.Shape...))
	for k, o := range state {
		d.see(o).CopyFrom(tensor.FromSlice(rooms[k], o.Shape...))
	}
	return nil
}

// descend updates the state of one parameter p with gradient g and returns the change of the
// parameter. state returns a pointer to number i of the state.
func descend(s *device.Descent, p, g float64, state func(i int) *float64) float64 {
	if !s.Decoupled {
		g += s.WeightDecay * p
	}
	n := float64(s.N)
	switch s.Rule {
	case device.DescendSGD:
		if s.Momentum == 0 {
			return -s.LR * g
		}
		m := state(0)
		if *m = s.Momentum**m + (1-s.Dampening)*g; s.N == 1 {
			*m = g
		}
		if s.Nesterov {
			return -s.LR * (g + s.Momentum**m)
		}
		return -s.LR * *m
	case device.DescendAdam:
		mean, square := state(0), state(1)
		*mean += (1 - s.Beta1) * (g - *mean)
		*square = s.Beta2**square + (1-s.Beta2)*g*g
		largest := *square
		if s.AMSGrad {
			*state(2) = max(*state(2), largest)
			largest = *state(2)
		}
		change := -s.LR / (1 - math.Pow(s.Beta1, n)) * *mean / (math.Sqrt(largest/(1-math.Pow(s.Beta2, n))) + s.Eps)
		if s.Decoupled {
			change -= s.LR * s.WeightDecay * p
		}
		return change
	case device.DescendAdagrad:
		sum := state(0)
		*sum += g * g
		return -s.LR / (1 + (n-1)*s.LRDecay) * g / (math.Sqrt(*sum) + s.Eps)
	}
	square, mean, last := state(0), state(1), state(2)
	*square = s.Beta2**square + (1-s.Beta2)*g*g
	spread := *square
	if s.Centered {
		*mean += (1 - s.Beta2) * (g - *mean)
		spread -= *mean * *mean
	}
	step := g / (math.Sqrt(spread) + s.Eps)
	if s.Momentum != 0 {
		*last = s.Momentum**last + step
		step = *last
	}
	return -s.LR * step
}
