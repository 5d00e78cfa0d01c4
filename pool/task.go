package pool

// A task is a call of a function with one value or one chunk of values, from its submission to
// the pool to its outcome. The outcome is delivered to its owner exactly once.
type task struct {
	call
	owner owner
	first int // index of its first value
	tries int // number of workers that died while running it
}

// An owner submits tasks and receives their outcomes. No lock is held when completeTask is
// called.
type owner interface {
	isDropped() bool                          // no further task should be started
	isAway() bool                             // no running task should be completed
	completeTask(t *task, r reply, err error) // delivers the outcome of t: r, unless err is not nil
}

// deliverReply delivers the reply r of a worker to the owner of t, and releases the arguments
// and the results. If the call failed, the error is a [*TaskError].
func (t *task) deliverReply(r reply) {
	t.args.releaseBlocks()
	var err error
	if r.err != nil {
		err = &TaskError{Func: t.fn, Index: t.first + min(max(r.index, 0), t.n-1), Err: r.err}
	}
	t.owner.completeTask(t, r, err)
	r.results.releaseBlocks()
}

// failLost fails a task with a [*TaskError] that wraps err, because it has no reply: its worker
// died, or the call or the reply could not be sent or decoded. No lock may be held.
func (t *task) failLost(err error) { t.failTask(&TaskError{Func: t.fn, Index: t.first, Err: err}) }

// failTask fails a task with err as it is, and releases its arguments. No lock may be held.
func (t *task) failTask(err error) {
	t.args.releaseBlocks()
	t.owner.completeTask(t, reply{}, err)
}

// A queue is a first-in-first-out queue of tasks. Pool.mu must be held to use it.
type queue struct {
	front []*task // returned tasks in reverse order
	tasks []*task
	head  int // index of the first element of tasks
}

func (q *queue) len() int { return len(q.front) + len(q.tasks) - q.head }

func (q *queue) push(ts ...*task) { q.tasks = append(q.tasks, ts...) }

// pushFront inserts tasks at the front, in their order.
func (q *queue) pushFront(ts ...*task) {
	for i := len(ts) - 1; i >= 0; i-- {
		q.front = append(q.front, ts[i])
	}
}

// pop removes the first task. It returns nil if the queue is empty.
func (q *queue) pop() (t *task) {
	if n := len(q.front); n > 0 {
		t, q.front[n-1] = q.front[n-1], nil
		q.front = q.front[:n-1]
		return t
	}
	if q.head == len(q.tasks) {
		return nil
	}
	t, q.tasks[q.head] = q.tasks[q.head], nil
	if q.head++; q.head == len(q.tasks) {
		q.tasks, q.head = q.tasks[:0], 0
	}
	return t
}

// popAll removes and returns all tasks in order.
func (q *queue) popAll() (all []*task) {
	for t := q.pop(); t != nil; t = q.pop() {
		all = append(all, t)
	}
	return all
}
