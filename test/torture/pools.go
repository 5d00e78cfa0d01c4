//go:build linux

package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/pool"
)

// A poolTask is the argument of a pool worker.
type poolTask struct {
	ID   uint64
	Book string
}

// poolWork returns a numbered tensor with the ID of the task.
var poolWork = pool.Register("torture task", func(_ context.Context, in poolTask) (numberedTensor, error) {
	p, err := openPen(in.Book)
	if err != nil {
		return numberedTensor{}, err
	}
	p.write(begins, in.ID)
	out, err := newParcel(in.ID, 1+int(in.ID%700))
	time.Sleep(time.Duration(in.ID%500) * time.Microsecond)
	p.write(ends, in.ID)
	return out, err
})

// A tasker submits tasks to a pool and records the result of each in came. Several goroutines
// may use it.
type tasker struct {
	*storm
	work    *pool.Func[poolTask, numberedTensor]
	p       *pool.Pool
	retries bool
	next    atomic.Uint64
	mu      sync.Mutex
	came    map[uint64]int // results and errors
}

func (t *tasker) tasks(n int) (all []poolTask) {
	for range n {
		all = append(all, poolTask{t.next.Add(1), t.path})
	}
	return all
}

// result records the result of the task want and reports a violation if it is wrong: v must have
// the task's ID, unless err says that the task failed; see [tasker.failed].
func (t *tasker) result(want uint64, v numberedTensor, err error) {
	t.mu.Lock()
	t.came[want]++
	t.mu.Unlock()
	if err != nil {
		t.failed(err)
		return
	}
	if id, err := v.open(); err != nil || id != want {
		t.wrong(&t.seen.Twice, 1, "task %d has the result of %d: %v", want, id, err)
	}
}

// failed reports a violation unless the task failed because its worker was killed and the pool
// does not retry.
func (t *tasker) failed(err error) {
	if e, ok := errors.AsType[*pool.TaskError](err); !ok || t.retries || !t.explained(e.Err) {
		t.wrong(&t.seen.Lost, 1, "a task has failed: %v", err)
	}
}

func (t *tasker) apply(ctx context.Context) {
	task := t.tasks(1)[0]
	v, err := t.work.Apply(ctx, t.p, task)
	t.result(task.ID, v, err)
}

func (t *tasker) mapTasks(ctx context.Context) {
	tasks := t.tasks(12)
	out, err := t.work.Map(ctx, t.p, tasks)
	if err != nil {
		t.failed(err)
		return
	}
	for i, v := range out {
		t.result(tasks[i].ID, v, nil)
	}
}

func (t *tasker) asTheyCome(ctx context.Context) {
	tasks := t.tasks(24)
	n := 0
	for v, err := range t.work.ImapUnordered(ctx, t.p, slices.Values(tasks)) {
		n++
		id := v.ID
		if e, ok := errors.AsType[*pool.TaskError](err); ok {
			id = tasks[e.Index].ID
		}
		t.result(id, v, err)
	}
	if n != len(tasks) {
		t.wrong(&t.seen.Lost, 1, "%d results of %d tasks", n, len(tasks))
	}
}

// poolStorm kills workers of a pool without retries, or with them, depending on the seed. It
// reports violations to s.
func poolStorm(s *storm) error { return taskStorm(s, poolWork) }

func taskStorm(s *storm, work *pool.Func[poolTask, numberedTensor]) error {
	t := &tasker{storm: s, work: work, retries: s.seed%2 == 0, came: make(map[uint64]int)}
	o := pool.Options{Workers: 4, ChunkSize: 1}
	if t.retries {
		o.Retries = 1000
	}
	var err error
	s.spares = true // a pool gives up if no worker is alive and none can be started
	if t.p, err = pool.New(s.ctx, o); err != nil {
		return err
	}
	over := make(chan struct{})
	var callers sync.WaitGroup
	for _, call := range []func(context.Context){t.apply, t.apply, t.apply, t.mapTasks, t.asTheyCome} {
		callers.Go(func() {
			for {
				call(s.ctx)
				select {
				case <-over:
					return
				case <-s.ctx.Done():
					return
				default:
				}
			}
		})
	}
	if s.deaths == 0 {
		s.eventually(func() bool { return len(s.book.readEntries()) > 100 })
	}
	s.hunt()
	s.progress()
	close(over)
	callers.Wait()
	t.p.Finish()
	ctx, cancel := s.timeoutContext()
	defer cancel()
	err = t.p.Join(ctx)
	if ctx.Err() != nil {
		s.wrong(&s.seen.Hangs, 1, "a pool that is finished does not end")
	}
	for id, n := range t.came {
		if n != 1 {
			s.wrong(&s.seen.Twice, 1, "task %d has %d results", id, n)
		}
	}
	return errors.Join(err, t.p.Close())
}
