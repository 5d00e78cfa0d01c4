// Package shoal runs functions of a program in processes of their own, as torch.multiprocessing
// does, and lets them work on the same memory.
//
//	var square = shoal.Register("square", func(ctx context.Context, rank int, in []float64) error {
//		fmt.Println(in[rank] * in[rank])
//		return nil
//	})
//
//	func main() { shoal.Main(run) }
//
//	func run(ctx context.Context) error {
//		return square.Spawn(ctx, 3, []float64{2, 3, 4}) // three processes; waits for all
//	}
//
// A worker is the same program, started again. It finds the function by the name given to Register.
// A [Func] starts n processes by Spawn, or one at a time into a [Group] by Go. Memory in the
// argument, as tensors and queues have it, is shared. All other values are copied.
//
// Every failure of a process is an error, a [*ProcessError], in the process that started it: an
// error that its function returned, with its sentinels; a panic of any goroutine, with its stack;
// an exit, a signal, a lack of memory. The first failure cancels the rest of the group. In the
// other direction, when a process dies, even by kill -9, all processes below it end within a
// moment.
//
// The starter prints what workers print, in whole lines, to its stdout and stderr. The threads of
// workers share the starter's budget, see [Threads], so that many workers do not get into each
// other's way.
//
// A process is started for its function, or it has waited for one, or it is a goroutine: see
// [StartMethod]. [Options] have its environment, its working directory, its niceness and its
// processors, and the policy for its failures.
//
// There is one trap: package-level initialisers, init functions and the statements of main before
// Main run in every worker as well. A program that loads a data set there loads it once per worker.
// [IsWorker] tells the processes apart. Flags are not parsed in workers.
//
// A program that imports package net is a dynamic binary if a C compiler is installed. Each of its
// workers then loads the C library first, which takes more than half a millisecond. Build the
// program with CGO_ENABLED=0.
//
// Processes need Linux 5.10. Elsewhere Main and Register work, and each call that starts a process
// returns an error that wraps [errors.ErrUnsupported].
package shoal
