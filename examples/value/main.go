// Command value shares a counter between four processes. In Python, v.value += 1 is a load and a
// store, which loses updates unless a lock is held; Add is atomic and needs no lock.
//
//	go run ./examples/value
//
// It prints the final counts, which are exact.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
)

const (
	workers = 4
	times   = 1000
)

// A score has two numbers, so it must be changed under its lock.
type score struct{ Games, Points int64 }

type job struct {
	Locked, Added *ipc.Value[int]
	Score         *ipc.Record[score]
}

var count = shoal.Register("count", func(ctx context.Context, rank int, j job) error {
	for range times {
		err := errors.Join(changeLocked(ctx, j.Locked, increment), changeLocked(ctx, j.Score, recordScore))
		if _, added := j.Added.Add(1); errors.Join(err, added) != nil {
			return errors.Join(err, added)
		}
	}
	return nil
})

// changeLocked calls change while it holds the lock of v, as Python's "with v.get_lock()" does.
func changeLocked[V interface {
	Lock(context.Context) error
	Unlock() error
}](ctx context.Context, v V, change func(V) error) error {
	if err := v.Lock(ctx); err != nil {
		return err
	}
	return errors.Join(change(v), v.Unlock())
}

func increment(v *ipc.Value[int]) error {
	n, err := v.Load()
	return errors.Join(err, v.Store(n+1))
}

func recordScore(r *ipc.Record[score]) error {
	s, err := r.Load()
	return errors.Join(err, r.Store(score{s.Games + 1, s.Points + 3}))
}

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	a, errA := ipc.NewValue(0)
	b, errB := ipc.NewValue(0)
	s, errS := ipc.NewRecord(score{})
	if err := errors.Join(errA, errB, errS); err != nil {
		return err
	}
	if err := count.Spawn(ctx, workers, job{a, b, s}); err != nil {
		return err
	}
	n, errA := a.Load()
	m, errB := b.Load()
	all, errS := s.Load()
	fmt.Printf("locked %d, added %d, %d points in %d games\n", n, m, all.Points, all.Games)
	return errors.Join(errA, errB, errS, a.Close(), b.Close(), s.Close())
}
