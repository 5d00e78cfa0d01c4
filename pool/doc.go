// Package pool runs functions on a pool of persistent worker processes, like Python's
// multiprocessing.Pool.
//
//	var square = pool.Register("square", squareOf)
//
//	func squareOf(ctx context.Context, x int) (int, error) { return x * x, nil }
//
//	func run(ctx context.Context) error { // called by shoal.Main
//		p, err := pool.New(ctx, pool.Options{Workers: 4})
//		if err != nil {
//			return err
//		}
//		defer p.Close()
//		squares, err := square.Map(ctx, p, []int{1, 2, 3})
//		if err != nil {
//			return err
//		}
//		fmt.Println(squares) // [1 4 9]
//		return nil
//	}
//
// Start with [Register], [New] and [Func.Map].
//
// A [Func] must be registered once, in a package-level variable, and may be called through any
// pool: Map, Imap and ImapUnordered for many values, Apply for one. The Async variants return
// immediately. A [Func2] takes two arguments and has StarMap. Shared memory in arguments and
// results, such as the elements of tensors, is not copied. A function that creates a tensor for its
// caller should return t.Give(): the worker then closes the tensor after sending it, or after a
// later value of the same chunk failed. Otherwise the tensor stays open in the worker until the
// garbage collector runs.
//
// # Failures
//
// An error returned by a function becomes the error of its task, in a [*TaskError]. If a worker
// panics, exits or is killed, only the task that it was running fails, with a *shoal.ProcessError;
// with Options.Retries the pool runs that task again. The pool replaces the worker and reassigns
// its other tasks. Each call therefore gets a result or an error.
//
// The pool knows which task a dead worker was running because each worker has its own queue and
// takes one task at a time.
//
// # The trap
//
// A call copies its arguments when it starts, except for shared memory: a task sees concurrent
// changes to the elements of a tensor. Canceling a call cancels the context of its running tasks. A
// worker then starts no further value of a chunk, but a function that ignores its context
// continues, and is only ended by Options.TaskTimeout or Close.
package pool
