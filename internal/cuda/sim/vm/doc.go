// Package vm runs PTX on the host, for kernels to be tested where there is no GPU: their own text,
// and no imitation of it in Go.
//
//	m, err := vm.Parse(text)
//	if err != nil {
//		return err // a *vm.SyntaxError
//	}
//	err = m.Entries["axpy"].Run(vm.Launch{Grid: grid, Block: block, Args: args, Memory: regions}) // or a *vm.Fault
//
// It knows the part of PTX that Shoal's kernels are written in, and nothing else: an instruction, a
// modifier or a directive that it does not know is an error. The 32 threads of a warp go in step,
// those that are furthest behind first; the warps of a block go one after the other, each as far as
// the next barrier, and in the opposite order the next time. So a barrier that is missing between
// two warps is found where a kernel runs in a few blocks; one that is missing within a warp where
// the Launch is Loose, which has each thread go as far as the barrier by itself.
//
// Approximations (ex2.approx and the like) are better than a GPU's.
package vm
