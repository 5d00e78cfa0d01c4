// Package autograd implements automatic differentiation. A value of a graph records how it was
// computed, so that Backward can propagate gradients from a loss to the parameters.
//
//	w := autograd.NewParam("w", tensor.FromSlice([]float64{1, 2}, 2))
//	x := autograd.Const(tensor.FromSlice([]float64{3, 4}, 2))
//	loss := autograd.Sum(autograd.Mul(w.Var(), x))
//	loss.Backward()
//	fmt.Println(w.Grad) // tensor([3., 4.], dtype=torch.float64)
//
// Start with [NewParam], [Const] and [Var.Backward].
//
// A [Param] is a trainable tensor. It can be sent to other processes through shared memory. A [Var]
// is a value in a graph. Operations are functions of Vars and compute at once. [Var.Backward] adds
// the derivative of a loss to the Grad of every Param.
//
// Operations on values of [NoGrad] are not recorded. A [Scope] reuses the memory of one training
// step in the next.
//
// # Higher-order derivatives
//
// [Grad] returns derivatives instead of adding them to the Grad of Params. With CreateGraph the
// derivatives are values of a graph themselves. They are needed for gradient penalties,
// Hessian-vector products, and derivatives of optimization steps.
//
//	dx := autograd.Grad([]*autograd.Var{y}, []*autograd.Var{x}, autograd.GradOptions{CreateGraph: true})[0]
//	autograd.Add(loss, autograd.Mean(autograd.Mul(dx, dx))).Backward()
//
// [Var.RegisterHook] inspects or replaces a gradient before it is used. [Checkpoint] recomputes a
// part of a graph instead of storing its values.
//
// # The trap
//
// A graph keeps references to tensors, not copies. The program must not change a tensor in place
// between an operation and Backward, because the gradient would be wrong. Backward panics if it
// detects a change. It detects changes that this process made through methods of tensors and
// optimizers. It cannot detect writes to a slice of [tensor.Data] or writes of other processes: see
// Note [Hogwild] in package optim.
package autograd
