// Package cuda has tensors on GPUs that processes share, without a copy, without cgo, and without
// the sender staying alive.
//
//	dev, err := tensor.ParseDevice("cuda") // the error says why, where there is none
//	if err != nil {
//		return err
//	}
//	x, err := tensor.On(dev).Ones(tensor.Float32, 1000, 1000)
//	if err != nil {
//		return err
//	}
//	defer x.Close()
//	err = q.Put(ctx, x) // its receiver has the same memory
//
// An allocation is a place in a segment, a large piece of memory that the driver exports as a file
// descriptor, and a block of the domain that stands for it: processes and messages hold that block
// as they hold one with bytes, a reaper takes it from the dead, and when nobody has it the place is
// free. A segment is mapped once by each process that uses it.
//
// The driver is libcuda.so.1, loaded when a device is asked for. A program that imports this
// package is a dynamic binary.
//
// The trap: this has run on one H100 and one driver so far, and never on two devices, but for the
// simulated ones. See docs/cuda.md.
package cuda
