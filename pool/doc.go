// Package pool runs functions on worker processes that stay: Python's multiprocessing.Pool.
//
//	var square = pool.Register("square", func(ctx context.Context, x int) (int, error) { return x * x, nil })
//
//	p, err := pool.New(ctx, pool.Options{Workers: 4})
//	if err != nil {
//		return err
//	}
//	defer p.Close()
//	squares, err := square.Map(ctx, p, []int{1, 2, 3})
//
// A [Func] is registered once, in a package-level variable, and called through any pool: Map, Imap
// and ImapUnordered for many values, Apply for one. The Async forms return at once. A [Func2] takes
// two arguments, and has StarMap. Shared memory in arguments and results, such as that of tensors,
// is not copied. A function that makes a tensor for its caller returns t.Give(): the worker closes
// the tensor when it has sent it, or when a later value of its chunk has failed. Otherwise the
// worker has it until its garbage collector runs.
//
// # Failures
//
// An error that a function returns is the error of its task, in a [*TaskError]. When a worker
// panics, exits or is killed, only the task that it was running fails, with a *shoal.ProcessError.
// With Options.Retries the pool runs this task again. The pool replaces the worker, and gives its
// other tasks to the other workers. So each call gets a result or an error.
//
// The pool knows which task a dead worker was running, since each worker has a queue of its own and
// takes one task at a time.
//
// # The trap
//
// A call copies its arguments when it begins, except shared memory: a task sees changes of a
// tensor's elements until it ends. And cancelling a call cancels the context of its running tasks:
// of their chunks no further value is begun, but a function that ignores its context goes on, and
// ends only by Options.TaskTimeout or Close.
package pool
