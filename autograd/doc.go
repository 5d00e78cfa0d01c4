// Package autograd computes derivatives: values that remember how they were computed, and walk back
// from a loss to the parameters that it depends on.
//
// A [Param] is a tensor that is learned; it lives in shared memory and travels to other processes.
// A [Var] is a value of a graph. Operations are functions of Vars and compute at once;
// [Var.Backward] adds the derivative of a loss to the Grad of every Param.
//
//	w := autograd.NewParam("w", tensor.FromSlice([]float64{1, 2}, 2))
//	x := autograd.Const(tensor.FromSlice([]float64{3, 4}, 2))
//	loss := autograd.Sum(autograd.Mul(w.Var(), x))
//	loss.Backward() // w.Grad is now [3, 4]
//
// What is computed from [NoGrad] is not recorded. A [Scope] reuses the memory of a step in the next
// one.
//
// # Derivatives of derivatives
//
// [Grad] returns derivatives instead of adding them to a Grad. With CreateGraph they are values of
// a graph themselves: of those a penalty on a gradient is made, the product of a Hessian and a
// vector, or a step of descent that is derived.
//
//	dx := autograd.Grad([]*autograd.Var{y}, []*autograd.Var{x}, autograd.GradOptions{CreateGraph: true})[0]
//	autograd.Add(loss, autograd.Mean(autograd.Mul(dx, dx))).Backward()
//
// [Var.RegisterHook] shows a gradient on its way, [Checkpoint] computes a part of a graph again
// instead of keeping it.
//
// # The trap
//
// A graph keeps tensors, not copies. One that is changed in place between an operation and Backward
// would make the gradient wrong, so Backward checks and panics. It sees changes made by this
// process through tensor's methods and optimizers, not those made through a slice of tensor.Data,
// nor those of other processes: see Note [Hogwild] in package optim.
package autograd
