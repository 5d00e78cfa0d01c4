//go:build shoalcrash

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/ipc"
)

// ipcScenarios returns, by name, the scenarios for objects of package ipc that consist of
// several words. The victim looks them up by name.
func ipcScenarios() map[string]*scenario {
	const name = "what it dies with"
	var once *ipc.Once // of the bench
	var tasks *ipc.JoinableQueue[int]
	var news *ipc.Latest[edition] // with number 1
	publish := func(*world) (err error) {
		if news, err = ipc.NewLatest(edition{}); err != nil {
			return err
		}
		return errors.Join(store(news, 1), ipc.Bind(context.Background(), name, news))
	}
	return map[string]*scenario{
		"ipc once": {
			most: 1,
			setup: func(*world) (err error) {
				once, err = ipc.NewOnce()
				return errors.Join(err, ipc.Bind(context.Background(), name, once))
			},
			act: func(v *victim) error {
				o, err := ipc.Lookup[*ipc.Once](name)
				if err != nil {
					return err
				}
				return errors.Join(o.Do(background, func() error { return nil }), o.Close())
			},
			after: func(w *world) {
				ctx, cancel := context.WithTimeout(background, limit())
				defer cancel()
				err := once.Do(ctx, func() error { return nil })
				done, e := once.Done()
				if err := errors.Join(err, e, ipc.Unlink(name), once.Close()); err != nil || !done {
					w.addProblem("once: done %v, %v", done, err)
				}
			},
		},
		"ipc joinable": {
			most: 1, drops: 1,
			setup: func(*world) (err error) {
				tasks, err = ipc.NewJoinableQueue[int](4)
				return errors.Join(err, ipc.Bind(context.Background(), name, tasks), tasks.TryPut(1), tasks.TryPut(2))
			},
			act: func(v *victim) error {
				q, err := ipc.Lookup[*ipc.JoinableQueue[int]](name)
				if err != nil {
					return err
				}
				_, first := q.Get(background)
				done := q.TaskDone()
				_, second := q.TryGet()
				return errors.Join(first, done, second, q.TaskDone(), q.Join(background), q.Close())
			},
			after: func(w *world) { joins(w, tasks); closes(w, ipc.Unlink(name), tasks.Close()) },
		},
		"ipc latest": {
			most: 2, drops: 2, setup: publish,
			act: func(v *victim) error {
				l, err := ipc.Lookup[*ipc.Latest[edition]](name)
				if err != nil {
					return err
				}
				return errors.Join(load(l, 1), store(l, 2), load(l, 2), store(l, 3), load(l, 3), l.Close())
			},
			after: func(w *world) {
				closes(w, load(news, 1), store(news, 9), load(news, 9), ipc.Unlink(name), news.Close())
			},
		},
	}
}

// An edition repeats its number in many places. One edition in three does not fit into a slot.
type edition struct {
	Number int
	Memory []*ipc.Memory
	Text   string
}

func store(l *ipc.Latest[edition], n int) error {
	e := edition{Number: n, Text: strings.Repeat("x", n%3*200)}
	var err error
	for range n {
		m, failed := ipc.NewMemory("", 5000)
		if failed != nil {
			return errors.Join(err, failed)
		}
		for i := range m.Bytes() {
			m.Bytes()[i] = byte(n)
		}
		e.Memory = append(e.Memory, m)
	}
	ctx, cancel := context.WithTimeout(background, limit())
	defer cancel()
	_, err = l.Store(ctx, e)
	return errors.Join(err, e.close())
}

// load returns an error unless the current edition is consistent and not older than least.
func load(l *ipc.Latest[edition], least int) error {
	e, _, err := l.Load()
	if err != nil {
		return err
	}
	if e.Number < least || len(e.Memory) != e.Number || len(e.Text) != e.Number%3*200 {
		err = fmt.Errorf("edition %d of %d blocks with %d letters, when %d was stored", e.Number,
			len(e.Memory), len(e.Text), least)
	}
	for _, m := range e.Memory {
		if bytes.Count(m.Bytes(), []byte{byte(e.Number)}) != len(m.Bytes()) {
			err = errors.Join(err, fmt.Errorf("edition %d has memory of another one", e.Number))
		}
	}
	return errors.Join(err, e.close())
}

func (e *edition) close() (err error) {
	for _, m := range e.Memory {
		err = errors.Join(err, m.Close())
	}
	return err
}

// joins completes the remaining tasks and waits for the queue. It records a problem if lost
// tasks are reported more than once.
func joins(w *world, tasks *ipc.JoinableQueue[int]) {
	ctx, cancel := context.WithTimeout(background, limit())
	defer cancel()
	var err error
	for err == nil {
		if _, err = tasks.TryGet(); err == nil {
			err = tasks.TaskDone()
		}
	}
	if !errors.Is(err, ipc.ErrEmpty) {
		w.addProblem("the tasks that are left: %v", err)
	}
	if err := tasks.Join(ctx); err != nil && !errors.Is(err, ipc.ErrTasksLost) {
		w.addProblem("join: %v", err)
	}
	if err := tasks.Join(ctx); err != nil {
		w.addProblem("join again: %v", err)
	}
}

func closes(w *world, errs ...error) {
	if err := errors.Join(errs...); err != nil {
		w.addProblem("%v", err)
	}
}
