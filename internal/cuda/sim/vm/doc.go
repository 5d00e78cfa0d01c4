// Package vm interprets PTX on the host, so that kernels can be tested without a GPU. It runs the
// actual text of the kernels, not a reimplementation in Go.
//
//	m, err := vm.Parse(text)
//	if err != nil {
//		return err // a *vm.SyntaxError
//	}
//	err = m.Entries["axpy"].Run(vm.Launch{Grid: grid, Block: block, Args: args, Memory: regions}) // or a *vm.Fault
//
// The package supports the part of PTX that Shoal's kernels use. Any other instruction, modifier or
// directive is an error. The 32 threads of a warp run in lockstep, and those with the lowest
// program counter run first. The warps of a block run sequentially, each up to the next barrier,
// and in the opposite order after it. A missing barrier between two warps is therefore detected by
// running a kernel in a few blocks. A missing barrier within a warp is detected with Launch.Loose,
// which runs each thread separately.
//
// Approximate instructions such as ex2.approx are more precise than on a GPU.
package vm
