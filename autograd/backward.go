package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// Backward computes the derivatives of v, a single number, with respect to every [Param] that it was computed from, and
// adds them to their Grad, which is created when missing. It uses the graph up: what was saved on the way is let go,
// and a second Backward through the same values panics.
//
// It panics if v depends on no Param, or if a tensor that is needed was changed since.
func (v *Var) Backward() {
	if v.t.Numel() != 1 {
		misuse("Backward of shape %v: only a single number has a gradient; take its Sum, or call BackwardFrom", v.t.Shape())
	}
	one := v.room()
	if v.far() {
		one.Fill(1)
	} else {
		byType("Backward", v, setOne[float32], setOne[float64])(one)
	}
	v.BackwardFrom(one)
	v.scope.recycle(one)
}

func setOne[F kernel.Float](t *tensor.Tensor) { data[F](t)[0] = 1 }

// BackwardFrom is Backward for a v of any shape, given dy, the derivative of what is wanted with respect to v, of v's shape.
func (v *Var) BackwardFrom(dy *tensor.Tensor) {
	if !v.needs {
		misuse("Backward of a value that depends on no parameter: it comes from Const, NoGrad or frozen parameters only")
	}
	if v.param != nil {
		v.total().Add(dy)
		return
	}
	ready := v.countUses(v.scope.takeStack())
	v.add(dy)
	for ready = append(ready[:0], v); len(ready) > 0; {
		last := len(ready) - 1
		n := ready[last]
		ready = ready[:last]
		n.give()
		for _, in := range n.inputs {
			if in.waiting--; in.waiting == 0 && in.param == nil && in.needs {
				ready = append(ready, in)
			}
		}
		n.forget()
	}
	v.scope.keepStack(ready)
}

// countUses sets waiting, of all that v was computed from, to how many operations between it and v use it: a value's
// gradient is whole when all of them have given theirs. Counting needs neither recursion, which a long chain would
// exhaust, nor a table of what was visited.
func (v *Var) countUses(stack []*Var) []*Var {
	for stack = append(stack[:0], v); len(stack) > 0; {
		last := len(stack) - 1
		n := stack[last]
		stack = stack[:last]
		if n.walked {
			misuse("Backward through %s for the second time: its values are gone; add the losses and call Backward once", n.op)
		}
		for _, in := range n.inputs {
			if !in.needs {
				continue
			}
			if in.waiting++; in.waiting == 1 {
				stack = append(stack, in)
			}
		}
	}
	return stack
}

// give lets v's operation give its inputs their gradients.
func (v *Var) give() {
	v.checkSaved()
	if v.derive != nil {
		v.derive(v, v.grad)
	} else {
		v.backward(v.grad)
	}
}

// forget lets go of all that a walked value does not need any more.
func (v *Var) forget() {
	v.scope.recycle(v.grad)
	v.grad, v.backward, v.derive, v.inputs, v.saved, v.walked = nil, nil, nil, nil, nil, true
	clear(v.inputRoom[:])
	clear(v.savedRoom[:])
}

// write lets f overwrite a tensor with a gradient of v, and adds it to what v has.
func (v *Var) write(f func(dx *tensor.Tensor)) {
	if !v.needs {
		return
	}
	if v.param == nil && v.grad == nil {
		v.grad = v.room()
		f(v.grad)
		return
	}
	dx := v.room()
	f(dx)
	v.total().Add(dx)
	v.scope.recycle(dx)
}

// add adds a gradient, which broadcasts from v's shape or is reduced to it.
func (v *Var) add(dx *tensor.Tensor) {
	if v.needs {
		v.write(func(own *tensor.Tensor) { own.CopyFrom(reduceTo(dx, own.Shape())) })
	}
}

// room returns a tensor like v's, whose elements are anything.
func (v *Var) room() *tensor.Tensor { return v.scope.empty(v.t.Device(), v.t.DType(), v.t.Shape()) }

// total returns what the gradients of v are added up in, zeros at first.
func (v *Var) total() *tensor.Tensor {
	if v.param != nil {
		return v.param.gradient()
	}
	if v.grad == nil {
		v.grad = v.room().Zero()
	}
	return v.grad
}

// reduceTo sums g over the dimensions in which a tensor of the shape was stretched to it.
func reduceTo(g *tensor.Tensor, shape []int) *tensor.Tensor {
	extra := g.Dims() - len(shape)
	var dims []int
	for i, n := range g.Shape() {
		if i < extra || n != 1 && shape[i-extra] == 1 {
			dims = append(dims, i)
		}
	}
	if len(dims) == 0 {
		return g
	}
	return tensor.Keep(tensor.Sum, g, dims...).Reshape(shape...)
}
