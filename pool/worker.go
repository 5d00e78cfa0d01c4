package pool

import (
	"context"
	"errors"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
)

// A station is the argument of a worker.
type station struct {
	Calls   *ipc.Receiver[call]
	Replies *ipc.Sender[reply]
	Init    call // its name is empty if there is none
}

// employ is the function of all workers.
var employ = shoal.Register("pool", work)

// work does one call after the other, until there are no more or the pool ends. A panic of a task is one of the
// worker: nobody knows in what state it has left what the next one would find.
func work(ctx context.Context, rank int, s station) error {
	defer s.Calls.Close()
	defer s.Replies.Close()
	defer s.Init.args.release()
	ctx = context.WithValue(ctx, rankKey{}, rank)
	if s.Init.fn != "" {
		if r := functions.perform(ctx, s.Init); r.err != nil {
			return r.err
		}
	}
	if err := s.Replies.Put(ctx, reply{}); err != nil {
		return err
	}
	for {
		c, err := s.Calls.Get(ctx)
		if errors.Is(err, ipc.ErrClosed) {
			return nil
		}
		if err == nil && ctx.Err() != nil {
			c.args.release() // who has been left alone on a goroutine must not begin what others may have been given
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if err := s.answer(ctx, c); err != nil {
			return err
		}
	}
}

// answer does one call.
func (s *station) answer(ctx context.Context, c call) error {
	defer c.args.release()
	begin := time.Now()
	r := functions.perform(ctx, c)
	r.id, r.took = c.id, time.Since(begin)
	defer r.results.release()
	err := s.Replies.Put(ctx, r)
	if err == nil || ctx.Err() != nil || errors.Is(err, ipc.ErrClosed) {
		return err
	}
	// No room for the results, say. The error has some.
	return s.Replies.Put(ctx, reply{id: c.id, err: err, took: r.took})
}

type rankKey struct{}

// Rank returns the number of the worker that runs a task, from 0, and -1 outside of one. A worker that replaces
// another one has its number.
func Rank(ctx context.Context) int {
	if rank, ok := ctx.Value(rankKey{}).(int); ok {
		return rank
	}
	return -1
}
