// Package mpi binds MPI libraries at run time: Open MPI 4 to 6, MPICH 4 and later and its
// ABI-compatible derivatives, and any library with the MPI 5 ABI. It loads the library by its
// soname, so one program runs with each of them and needs no headers. The caller should choose the
// flavor that matches the launcher of the process.
//
//	lib, err := mpi.Load(mpi.OpenMPI)
//	if err != nil {
//		return err // it is not installed
//	}
//	err = lib.Init() // waits for the other ranks
//	world := lib.World()
//
// The trap: a call that waits for other ranks cannot be canceled.
package mpi
