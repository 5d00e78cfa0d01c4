// Package sim is a driver for machines without a GPU: it keeps CUDA's rules, with CUDA's errors, on
// memory of the host that several processes really share.
//
//	devices, err := sim.Create(2, 256<<20) // in the first process
//	if err != nil {
//		return err
//	}
//	defer devices.Close()
//	driver := sim.New(devices.Paths()) // in every process
//
// A program that imports this package has cudriver.Open return such a driver where the environment
// names the files of devices.
//
// What it refuses: any call before Init or without a context current on the calling thread;
// pointers and handles that mean nothing, or nothing any more; sizes that are no multiple of the
// granularity; access that was not set; exports that were not asked for; legacy handles in the
// process that made them. An access to what is not mapped, also by work that was queued before, is
// ErrorIllegalAddress, and the context is lost.
//
// What it has of a device, so that a program which is wrong there is wrong here: a few queues for
// all streams, each of which takes so many launches; calls that wait for the device; fresh memory
// full of garbage; memory that the driver takes for itself, and a figure of what is free that is
// not exact; memory that another context does not reach; a cuBLAS; and time for what takes long, if
// [TimesKey] says so. Legacy memory stays as long as a process has it open, and what its owner
// frees is garbage.
//
// The trap: rules were read, not tried. Where a GPU answers otherwise the simulator is wrong and
// has to be changed.
//
// Note [Memory that the kernel counts]: a device is a file. An allocation is an open file
// description of it, which holds the lock of the allocation's range. Handles, exported descriptors
// and mappings are references of that description. So the range is free when the last of them is
// gone, in whatever process and by whatever death, as NVIDIA's driver has it. A process that may be
// killed has nothing to count.
package sim
