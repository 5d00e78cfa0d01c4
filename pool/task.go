package pool

// A task is a call until its end, of which its owner learns exactly once.
type task struct {
	call
	owner owner
	first int // index of the first of its values
	tries int // workers that have died of it
}

// An owner is who has handed tasks in.
type owner interface {
	dropped() bool                    // it wants no more tasks begun
	away() bool                       // nor those finished that have begun
	over(t *task, r reply, err error) // t has ended: with r, unless there is an error
}

// finish delivers what a worker has replied.
func (t *task) finish(r reply) {
	t.args.release()
	var err error
	if r.err != nil {
		err = &TaskError{Func: t.fn, Index: t.first + min(max(r.index, 0), t.n-1), Err: r.err}
	}
	t.owner.over(t, r, err)
	r.results.release()
}

// die ends a task whose worker did not reply.
func (t *task) die(err error) { t.fail(&TaskError{Func: t.fn, Index: t.first, Err: err}) }

// fail ends a task that was not run.
func (t *task) fail(err error) {
	t.args.release()
	t.owner.over(t, reply{}, err)
}

// A queue of tasks, first in, first out.
type queue struct {
	front []*task // those that came back, the next one last
	tasks []*task
	head  int // of tasks
}

func (q *queue) len() int { return len(q.front) + len(q.tasks) - q.head }

func (q *queue) push(ts ...*task) { q.tasks = append(q.tasks, ts...) }

// back puts tasks before all others, in their order.
func (q *queue) back(ts ...*task) {
	for i := len(ts) - 1; i >= 0; i-- {
		q.front = append(q.front, ts[i])
	}
}

// pop takes the first, nil if there is none.
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

// clear takes all.
func (q *queue) clear() (all []*task) {
	for t := q.pop(); t != nil; t = q.pop() {
		all = append(all, t)
	}
	return all
}
