// Package mpi lets the ranks of [dist.Init] reach each other by MPI: Open MPI, MPICH and those that
// share its ABI, or a library with the ABI of MPI 5. A program imports it for its effect:
//
//	import _ "github.com/shoal-mp/shoal/dist/mpi"
//
// The program calls dist.Init and does not name the library. It is started by mpirun, mpiexec or
// srun, and takes the library that belongs to that launcher. It needs neither headers nor a C
// compiler to be built. It is not a static binary, so package dist does not import it.
//
// Ranks that share a host exchange long tensors in shared memory, and the first rank of each host
// makes the call of the library with those of the other hosts. SHOAL_DIST_HIERARCHICAL=1 has all
// calls of these kinds go that way, and 0 none; docs/cluster.md has the figures.
//
// # When something goes wrong
//
// A rank whose context ends breaks the group: its own call and those of the other ranks return a
// [dist.RankError] within moments. The calls of the library itself cannot be ended. They are left
// alone, with the tensors that they use, so such a process should end. A rank that is killed is the
// launcher's affair, which ends the whole job; docs/cluster.md says how each of them does it. Ranks
// that share memory with it learn of its death at once.
//
// # The trap
//
// MPI libraries wait by looking again and again. With more ranks than processors tell Open MPI so
// (mpirun --oversubscribe), and do not do it with MPICH.
//
// [dist.Init]: https://pkg.go.dev/github.com/shoal-mp/shoal/dist#Init
// [dist.RankError]: https://pkg.go.dev/github.com/shoal-mp/shoal/dist#RankError
package mpi
