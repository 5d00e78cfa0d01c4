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
// and ImapUnordered for many values, Apply for one; the Async forms return a [Result]. A [Func2]
// takes two arguments, and has StarMap. What is shared in arguments and results, such as tensors,
// is not copied.
//
// # Failures
//
// What a function returns as its error is the error of its task, a [*TaskError]. A worker that
// panics, exits or is killed fails the one task that it was at, with a [*shoal.ProcessError], and
// is replaced; Options.Retries has the task run again instead. What it had been given beyond that
// goes to others. No call waits for a result that nobody will produce.
//
// Each worker has a queue of its own, of which a dead one has taken exactly one message too many.
// That is how the pool knows.
//
// # The trap
//
// A worker takes what was captured when the task was handed in, but the blocks of shared memory in
// it are the same: a change of a tensor's elements before the result is there is a change for the
// task. And a task that runs when its Map is cancelled has its context cancelled, no more: one that
// does not look at it is ended by Options.TaskTimeout and Close only.
package pool
