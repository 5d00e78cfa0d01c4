// Package autograd computes derivatives. A value of its graphs remembers how it was computed, so
// that Backward can walk from a loss back to the parameters.
//
// A [Param] is a tensor that is learned. It travels to other processes through shared memory. A
// [Var] is a value of a graph. Operations are functions of Vars and compute at once. [Var.Backward]
// adds the derivative of a loss to the Grad of every Param.
//
//	w := autograd.NewParam("w", tensor.FromSlice([]float64{1, 2}, 2))
//	x := autograd.Const(tensor.FromSlice([]float64{3, 4}, 2))
//	loss := autograd.Sum(autograd.Mul(w.Var(), x))
//	loss.Backward() // w.Grad is now [3, 4]
//
// A graph does not record operations on values of [NoGrad]. A [Scope] reuses the memory of one
// training step in the next.
//
// # Derivatives of derivatives
//
// [Grad] returns derivatives, and adds none to the Grad of a Param. With CreateGraph the
// derivatives are values of a graph themselves. They serve for a penalty on a gradient, for the
// product of a Hessian and a vector, or for the derivative of a step of descent.
//
//	dx := autograd.Grad([]*autograd.Var{y}, []*autograd.Var{x}, autograd.GradOptions{CreateGraph: true})[0]
//	autograd.Add(loss, autograd.Mean(autograd.Mul(dx, dx))).Backward()
//
// [Var.RegisterHook] sees a gradient before it is used. [Checkpoint] computes a part of a graph
// again instead of keeping its values.
//
// # The trap
//
// A graph keeps tensors, not copies. A tensor that is changed in place between an operation and
// Backward would make the gradient wrong, so Backward panics if it sees a change. It sees changes
// that this process made through methods of tensors and optimizers. It does not see writes to a
// slice of tensor.Data, nor writes of other processes: see Note [Hogwild] in package optim.
package autograd
