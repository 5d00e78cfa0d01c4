// Package sim implements a CUDA driver for machines without a GPU. It enforces CUDA's rules, with
// CUDA's errors, on host memory that processes share.
//
//	devices, err := sim.Create(2, 256<<20) // in the first process
//	if err != nil {
//		return err
//	}
//	defer devices.Close()
//	driver := sim.New(devices.Paths()) // in every process
//
// In a program that imports this package, [cudriver.Open] returns such a driver if the environment
// names device files.
//
// The simulator rejects: calls before Init or without a context that is current on the calling
// thread; invalid and stale pointers and handles; sizes that are not a multiple of the granularity;
// access that was not granted; exports of memory that is not shareable; and legacy handles in the
// process that created them. An access to unmapped memory, including one by work queued earlier, is
// ErrorIllegalAddress and invalidates the context.
//
// It simulates the following properties of a GPU, so that programs which mishandle them fail here
// too: a few hardware queues for all streams, each with a limited depth; calls that wait for the
// device; uninitialised memory filled with garbage; the driver's own memory use, and an inexact
// amount of free memory; memory that other contexts cannot access; a cuBLAS; and delays for slow
// operations, if [TimesKey] is set. Legacy memory exists as long as a process has it open, and
// contains garbage after its owner has freed it.
//
// The rules come from CUDA's documentation, not from experiments. If a GPU behaves differently, the
// simulator is wrong and must be changed.
//
// Note [Memory that the kernel counts]: a device is a file. An allocation is an open file
// description of that file, which holds a lock on the allocation's range. Handles, exported
// descriptors and mappings are references to that description. The kernel drops the lock, and so
// frees the range, when the last reference is gone, in any process and after any kind of death, as
// NVIDIA's driver does. A process that may be killed keeps no counts.
package sim
