//go:build shoalcrash

package main

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/ipc"
)

// ipcScenarios are those of what package ipc makes of several words: the victim finds it by name.
func ipcScenarios() map[string]*scenario {
	const name = "what it dies with"
	var once *ipc.Once // of the bench
	var tasks *ipc.JoinableQueue[int]
	return map[string]*scenario{
		"ipc once": {
			most: 1,
			setup: func(*world) (err error) {
				once, err = ipc.NewOnce()
				return errors.Join(err, ipc.Bind(name, once))
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
					w.say("once: done %v, %v", done, err)
				}
			},
		},
		"ipc joinable": {
			most: 1, drops: 1,
			setup: func(*world) (err error) {
				tasks, err = ipc.NewJoinableQueue[int](4)
				return errors.Join(err, ipc.Bind(name, tasks), tasks.TryPut(1), tasks.TryPut(2))
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
	}
}

// joins does the tasks that are left, and waits for those that nobody does any more. What is lost is said once.
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
		w.say("the tasks that are left: %v", err)
	}
	if err := tasks.Join(ctx); err != nil && !errors.Is(err, ipc.ErrTasksLost) {
		w.say("join: %v", err)
	}
	if err := tasks.Join(ctx); err != nil {
		w.say("join again: %v", err)
	}
}

func closes(w *world, errs ...error) {
	if err := errors.Join(errs...); err != nil {
		w.say("%v", err)
	}
}
