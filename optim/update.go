package optim

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// An update contains the slices that a step of one parameter reads and writes. It is valid during
// the step only.
type update[F kernel.Float] struct {
	n     int64 // number of this step, from 1
	p, g  []F
	state [maxStates][]F

	was, now [stretch]F // buffers of updateElements
}

// stretch is the number of elements that updateElements processes at a time in atomic mode.
const stretch = 256

// maxStates is the maximum number of state tensors of a parameter.
const maxStates = 3

// Step updates the parameters in place. Frozen parameters and parameters without a gradient are
// not changed. Step panics with an error that wraps [tensor.ErrMisuse] if the shapes of a
// parameter and its gradient differ, if the dtype of a parameter on the host is not Float32 or
// Float64, or, with Atomic, if a parameter or gradient is not contiguous. It panics with the
// device's errors for a parameter on a device.
func (c *core) Step() {
	for i := range c.slots {
		s := &c.slots[i]
		if s.Param.Grad == nil || s.Param.Frozen {
			continue
		}
		s.check()
		s.createState(c.options.stateCount())
		if !s.Param.T.IsContiguous() || !s.Param.Grad.IsContiguous() {
			s = s.contiguousCopy(c.options.descent().Atomic)
		}
		switch dt := s.Param.T.DType(); {
		case s.Param.T.Device() != nil:
			states, _ := c.options.stateCount()
			s.stepOnDevice(c.options.descent(), s.State[:states])
		case dt == tensor.Float32:
			c.single.stepAll(s)
		case dt == tensor.Float64:
			c.double.stepAll(s)
		default:
			misuse("parameter %s has dtype %v, want float32 or float64", s.Param.Name, dt)
		}
		if own := c.slots[i].Param; s.Param != own {
			own.T.CopyFrom(s.Param.T)
			if err := s.Param.Close(); err != nil {
				panic(fmt.Errorf("optim: step of parameter %s: %w", s.Param.Name, err))
			}
		}
	}
}

// contiguousCopy returns a slot with contiguous copies of the parameter and its gradient, and
// with the same state. The caller must copy the result back and close the Param of the slot.
// Atomic updates of a copy would be pointless, so contiguousCopy panics with [tensor.ErrMisuse]
// for them.
func (s *slot) contiguousCopy(atomically bool) *slot {
	if atomically {
		misuse("parameter %s or its gradient is not contiguous, want contiguous tensors for Atomic", s.Param.Name)
	}
	copied := *s
	copied.Param = autograd.NewParam(s.Param.Name, s.Param.T.Contiguous())
	copied.Param.Grad = s.Param.Grad.Contiguous()
	return &copied
}

// tensors gives access to the devices of tensors.
var tensors = device.OfTensors[*tensor.Tensor, tensor.DType]()

// stepOnDevice performs a step on the device of the parameter, its gradient and its state. state
// contains the state tensors that the optimizer uses. stepOnDevice panics if one of these tensors
// is not contiguous or the device returns an error.
func (s *slot) stepOnDevice(d device.Descent, state []*tensor.Tensor) {
	all := append([]*tensor.Tensor{s.Param.T, s.Param.Grad}, state...)
	operands := make([]device.Operand[tensor.DType], len(all))
	for i, t := range all {
		if !t.IsContiguous() {
			misuse("parameter %s, its gradient or its state is not contiguous", s.Param.Name)
		}
		operands[i] = tensors.Operand(t)
	}
	dev := tensors.Computer(all...)
	d.N = atomic.AddInt64(&tensor.Data[int64](s.Steps)[0], 1)
	if s.Param.T.Numel() > 0 {
		if err := dev.Descend(d, operands[0], operands[1], operands[2:]...); err != nil {
			panic(fmt.Errorf("optim: step of parameter %s on %v: %w", s.Param.Name, s.Param.T.Device(), err))
		}
	}
	for _, t := range all {
		t.Touch()
	}
}

func (by *updater[F]) stepAll(s *slot) {
	u := &by.update
	u.p, u.g = tensor.Data[F](s.Param.T), tensor.Data[F](s.Param.Grad)
	for i, t := range s.State {
		u.state[i] = tensor.Data[F](t)
	}
	u.n = atomic.AddInt64(&tensor.Data[int64](s.Steps)[0], 1)
	by.step(u)
	u.p, u.g, u.state = nil, nil, [maxStates][]F{}
	s.Param.T.Touch() // graphs that still need the old value detect the change by its version
	runtime.KeepAlive(s.Param.Grad)
	runtime.KeepAlive(s)
}

// updateElements calls f to update the elements p by their gradients g. at is the index of the
// first of them in the parameter and its state. In atomic mode f updates a copy of each stretch
// of elements, and the difference is then added atomically.
func (u *update[F]) updateElements(atomically bool, f func(at int, p, g []F)) {
	if !atomically {
		f(0, u.p, u.g)
		return
	}
	for at := 0; at < len(u.g); at += stretch {
		g := u.g[at:min(at+stretch, len(u.g))]
		p, was, now := u.p[at:at+len(g)], u.was[:len(g)], u.now[:len(g)]
		for i := range p {
			was[i] = kernel.LoadAtomic(&p[i])
		}
		copy(now, was)
		f(at, now, g)
		kernel.Axpy(-1, was, now)
		kernel.AxpyAtomic(1, now, p)
	}
}
