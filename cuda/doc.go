// Package cuda provides tensors in GPU memory that processes share without copying, without cgo,
// and without the sender having to stay alive.
//
//	if err := cuda.Available(); err != nil {
//		return err // with the reason
//	}
//	dev, err := tensor.ParseDevice("cuda")
//	if err != nil {
//		return err
//	}
//	x, err := tensor.On(dev).Ones(tensor.Float32, 1000, 1000)
//	if err != nil {
//		return err
//	}
//	defer x.Close()
//	fmt.Println(x.Sum()) // 1e+06
//
// Start with [Available], [tensor.ParseDevice] and [tensor.On]. A tensor on a device is sent to
// another process like any other value; the receiver has the same memory.
//
// An allocation is a range of a segment and a block of the shared-memory domain. A segment is a
// large piece of device memory that the driver exports as a file descriptor; each process that uses
// it maps it once. The block is the allocation's reference count: processes and messages hold
// references to it as to any other block, and the domain's reaper drops the references of dead
// processes. When the last reference is dropped, the range is free.
//
// The driver, libcuda.so.1, is loaded when a device is first requested. A program that imports this
// package is dynamically linked.
//
// The package has been tested on one H100 with one driver version, and never on two physical
// devices; multi-device code has only run on simulated devices. See docs/cuda.md.
package cuda
