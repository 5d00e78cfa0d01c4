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
// A worker is the same program, started again: it finds the function by the name given to Register.
// A [Func] starts n processes by Spawn, or one at a time into a [Group] by Go. Memory that stands
// in the argument, as tensors and queues do, is shared; everything else is copied.
//
// Whatever happens to a process is an error, a [*ProcessError], in the process that started it: an
// error that its function returned, with its sentinels; a panic of any goroutine, with its stack;
// an exit, a signal, a lack of memory. The first failure cancels the rest of the group. In the
// other direction, when a process dies, even by kill -9, all processes below it end within a
// moment.
//
// What workers print comes out of the starter's stdout and stderr in whole lines. Their threads
// share the starter's budget, see [Threads], so that many workers do not get into each other's way.
//
// A process is started for its function, or has waited for one, or is a goroutine: see
// [StartMethod]. [Options] have its environment, its place, its niceness and its processors, and
// what is done when it fails.
//
// The trap: package-level initialisers, init functions and what main does before Main run in every
// worker as well. A program that loads a data set there loads it once per worker; [IsWorker] tells.
// And flags are not parsed in workers.
//
// A program that imports package net is a dynamic binary where there is a C compiler, and each of
// its workers loads the C library first, which takes more than half a millisecond: build it with
// CGO_ENABLED=0.
//
// Processes need Linux 5.10. Elsewhere Main and Register work, and whatever starts a process
// returns an error that wraps [errors.ErrUnsupported].
package shoal
