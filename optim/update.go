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

// An update is what a step reads and changes of one parameter.
type update[F kernel.Float] struct {
	n     int64 // of this step, from 1 on
	p, g  []F
	state [maxStates][]F

	was, now [stretch]F // see move
}

// stretch is how many elements move atomically at a time.
const stretch = 256

// maxStates is how many tensors of state a parameter has at most.
const maxStates = 3

// Step takes one step, in place. Parameters without a gradient, and frozen ones, stay as they are.
func (c *core) Step() {
	for i := range c.slots {
		s := &c.slots[i]
		if s.Param.Grad == nil || s.Param.Frozen {
			continue
		}
		s.check()
		s.prepare(c.options.states())
		if !s.Param.T.IsContiguous() || !s.Param.Grad.IsContiguous() {
			s = s.dense(c.options.descent().Atomic)
		}
		switch dt := s.Param.T.DType(); {
		case s.Param.T.Device() != nil:
			states, _ := c.options.states()
			s.descend(c.options.descent(), s.State[:states])
		case dt == tensor.Float32:
			c.single.run(s)
		case dt == tensor.Float64:
			c.double.run(s)
		default:
			misuse("parameter %s is %v: steps are taken in float32 and float64", s.Param.Name, dt)
		}
		if own := c.slots[i].Param; s.Param != own {
			own.T.CopyFrom(s.Param.T)
			if err := s.Param.Close(); err != nil {
				panic(fmt.Errorf("optim: step of parameter %s: %w", s.Param.Name, err))
			}
		}
	}
}

// dense returns the slot of a copy whose elements are next to each other. Nobody could add to a
// copy atomically.
func (s *slot) dense(atomically bool) *slot {
	if atomically {
		misuse("parameter %s or its gradient is not contiguous, which Atomic needs", s.Param.Name)
	}
	copied := *s
	copied.Param = autograd.NewParam(s.Param.Name, s.Param.T.Contiguous())
	copied.Param.Grad = s.Param.Grad.Contiguous()
	return &copied
}

// tensors reaches the devices that tensors are on.
var tensors = device.OfTensors[*tensor.Tensor, tensor.DType]()

// descend takes a step on the device that parameter, gradient and state are on.
func (s *slot) descend(d device.Descent, state []*tensor.Tensor) {
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

func (by *updater[F]) run(s *slot) {
	u := &by.update
	u.p, u.g = tensor.Data[F](s.Param.T), tensor.Data[F](s.Param.Grad)
	for i, t := range s.State {
		u.state[i] = tensor.Data[F](t)
	}
	u.n = atomic.AddInt64(&tensor.Data[int64](s.Steps)[0], 1)
	by.step(u)
	u.p, u.g, u.state = nil, nil, [maxStates][]F{}
	s.Param.T.Touch() // graphs that need the old value notice
	runtime.KeepAlive(s.Param.Grad)
	runtime.KeepAlive(s)
}

// move lets f change the elements p from at on, by their gradients g. Atomically, it changes a copy
// of a stretch of them, and what it has changed them by is added.
func (u *update[F]) move(atomically bool, f func(at int, p, g []F)) {
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
