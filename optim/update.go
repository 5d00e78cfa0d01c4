package optim

import (
	"runtime"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// An update is what a step reads and changes of one parameter.
type update[F kernel.Float] struct {
	n     int64 // of this step, from 1 on
	p, g  []F
	state [maxStates][]F
}

// maxStates is how many tensors of state a parameter has at most.
const maxStates = 3

// step has each parameter that has a gradient changed by one of two functions, that of its dtype.
func step[O options](c *core, o *O, f32 func(*O, *update[float32]), f64 func(*O, *update[float64])) {
	for i := range c.slots {
		s := &c.slots[i]
		if s.Param.Grad == nil || s.Param.Frozen {
			continue
		}
		s.check()
		s.prepare((*o).states())
		switch dt := s.Param.T.DType(); dt {
		case tensor.Float32:
			run(s, o, &c.single, f32)
		case tensor.Float64:
			run(s, o, &c.double, f64)
		default:
			misuse("parameter %s is %v: steps are taken in float32 and float64", s.Param.Name, dt)
		}
	}
}

func run[O options, F kernel.Float](s *slot, o *O, u *update[F], f func(*O, *update[F])) {
	*u = update[F]{p: tensor.Data[F](s.Param.T), g: tensor.Data[F](s.Param.Grad)}
	for i, t := range s.State {
		u.state[i] = tensor.Data[F](t)
	}
	u.n = atomic.AddInt64(&tensor.Data[int64](s.Steps)[0], 1)
	f(o, u)
	*u = update[F]{}
	s.Param.T.Touch() // graphs that need the old value notice
	runtime.KeepAlive(s.Param.Grad)
	runtime.KeepAlive(s)
}

// move takes from each element what by says, of the element and its gradient.
func (u *update[F]) move(atomically bool, by func(i int, p, g F) F) {
	if !atomically {
		for i, g := range u.g {
			u.p[i] -= by(i, u.p[i], g)
		}
		return
	}
	var one [1]F
	for i, g := range u.g {
		one[0] = by(i, kernel.LoadAtomic(&u.p[i]), g)
		kernel.AxpyAtomic(-1, one[:], u.p[i:i+1])
	}
}
