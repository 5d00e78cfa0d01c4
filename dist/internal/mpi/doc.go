// Package mpi calls an MPI library: Open MPI 4 to 6, MPICH 4 and those that share its ABI, and any
// library with the ABI of MPI 5. It is chosen by the launcher that has started the process, and
// found by its soname, so that one program runs with each of them and needs no headers.
//
//	lib, err := mpi.Load(mpi.OpenMPI)
//	if err != nil {
//		return err // it is not installed
//	}
//	err = lib.Init() // waits for the other ranks
//	world := lib.World()
//
// The trap: nothing ends a call that waits for a rank which does not come.
package mpi
