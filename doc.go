// Package shoal runs functions of a program in separate processes, like torch.multiprocessing, and
// lets them share memory.
//
//	var square = shoal.Register("square", printSquare)
//
//	func printSquare(ctx context.Context, rank int, in []float64) error {
//		fmt.Println(in[rank] * in[rank])
//		return nil
//	}
//
//	func main() { shoal.Main(run) }
//
//	func run(ctx context.Context) error {
//		return square.Spawn(ctx, 3, []float64{2, 3, 4}) // waits for all three
//	}
//
// Start with [Register], [Main] and [Func.Spawn].
//
// A worker is a new process of the same program. It finds the function by the name passed to
// [Register]. [Func.Spawn] starts n processes and waits; [Func.Go] adds one process to a [Group].
// Shared memory in the argument, such as tensors and queues, is shared. All other values are
// copied.
//
// Every failure of a process is returned as an error, a [*ProcessError], in the process that
// started it: an error that its function returned, including its sentinels; a panic of any
// goroutine, with its stack; an exit, a signal, or lack of memory. The first failure cancels the
// rest of the group. In the other direction, when a process dies, even by kill -9, all of its
// descendants end shortly afterwards.
//
// The process that starts workers copies their output, in whole lines, to its stdout and stderr.
// Workers share its thread budget, see [Threads], so that many workers do not slow each other down.
//
// A process may be started for its function, may have been waiting for one, or may be replaced by a
// goroutine: see [StartMethod]. [Options] sets the environment, working directory, niceness and
// processors of processes, and the restart policy.
//
// The trap: package-level initializers, init functions and the statements of main before [Main] run
// in every worker as well. A program that loads a data set there loads it once per worker.
// [IsWorker] distinguishes the processes. Flags are not parsed in workers.
//
// A program that imports package net is dynamically linked if a C compiler is installed. Each of
// its workers then loads the C library first, which takes more than half a millisecond. Such
// programs should be built with CGO_ENABLED=0.
//
// Starting processes requires Linux 5.10. On other systems Main and Register work, and functions
// that start a process return an error that wraps [errors.ErrUnsupported].
package shoal
