// Package mpi connects the ranks of [dist.Init] by MPI: Open MPI, MPICH and its ABI-compatible
// derivatives, or a library with the MPI 5 ABI. Programs import it for its side effect:
//
//	import _ "github.com/shoal-mp/shoal/dist/mpi"
//
//	func run(ctx context.Context) error { // in each process that mpirun starts
//		g, err := dist.Init(ctx)
//		if err != nil {
//			return err
//		}
//		defer g.Close()
//		t := tensor.Full(tensor.Float32, float64(g.Rank()), 3)
//		return g.AllReduce(ctx, dist.Sum, t)
//	}
//
// Start with [dist.Init] and [dist.Group.AllReduce].
//
// The program calls dist.Init and does not name the library. It must be started by mpirun, mpiexec
// or srun, and loads the library that matches this launcher. Building it requires neither headers
// nor a C compiler. The program is not a static binary; for this reason package dist does not
// import this package.
//
// Ranks that share a host exchange large tensors in shared memory, and the first rank of each host
// makes the library call with the first ranks of the other hosts. SHOAL_DIST_HIERARCHICAL=1 uses
// this algorithm for all supported calls, and 0 for none; see docs/cluster.md for measurements.
//
// # Errors
//
// If the context of a rank ends, the group is broken: its own call and the calls of the other ranks
// return a [dist.RankError] within moments. The library's calls cannot be canceled. They are
// abandoned, with the tensors that they use, so such a process should exit. If a rank is killed,
// the launcher ends the whole job; docs/cluster.md describes how each launcher does it. Ranks that
// share memory with the killed rank learn of its death at once.
//
// # The trap
//
// MPI libraries wait by polling. With more ranks than CPUs, Open MPI should be started with mpirun
// --oversubscribe. MPICH should not be used with more ranks than CPUs.
//
// [dist.Init]: https://pkg.go.dev/github.com/shoal-mp/shoal/dist#Init
// [dist.RankError]: https://pkg.go.dev/github.com/shoal-mp/shoal/dist#RankError
// [dist.Group.AllReduce]: https://pkg.go.dev/github.com/shoal-mp/shoal/dist#Group.AllReduce
package mpi
