package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// An undo is how an object was: one of the two functions is called.
type undo struct {
	restore func() // make it so again
	discard func() // forget it
}

// A txn is a transaction that is going on in the server.
type txn struct {
	s       *server
	touched map[*object]undo
}

// touch saves an object before the transaction does anything with it. The caller holds the object's
// lock.
func (t *txn) touch(o *object) error {
	if _, ok := t.touched[o]; ok {
		return nil
	}
	s, ok := o.state.(saver)
	if !ok {
		return fmt.Errorf("%w: a %s cannot be undone", ErrTxn, o.kind.name)
	}
	t.touched[o] = s.save(t.s.d)
	return nil
}

// end commits the transaction, or makes it undone.
func (t *txn) end(commit bool) {
	for o, u := range t.touched {
		o.mu.Lock()
		if commit || o.gone {
			u.discard()
		} else {
			u.restore()
		}
		o.changed.fire()
		o.mu.Unlock()
	}
	t.s.gate.end()
}

// A transaction is what a client knows of its txn: calls whose context has it take its lane.
type transaction struct {
	c  *client
	mu sync.Mutex // held by a call

	lane   lane[request, reply]
	failed error // the lane is gone
}

type transactionKey struct{}

func (c *client) transaction(ctx context.Context) *transaction {
	if t, _ := ctx.Value(transactionKey{}).(*transaction); t != nil && t.c == c {
		return t
	}
	return nil
}

// Txn runs f as a transaction: no other call of the manager's objects comes between the first and
// the last call of f, and if f fails, all that its calls changed is as it was before. Calls belong
// to the transaction if they are given the context that f gets:
//
//	err := m.Txn(ctx, func(tx context.Context) error {
//		if err := from.Add(tx, -10); err != nil { … }
//		return to.Add(tx, 10)
//	})
//
// The transaction is undone as well when f panics, when one of its calls outlasts its deadline, and
// when this process dies, however it does. While it lasts all other calls wait, and so does a call
// in f that is given another context: for ever, unless that context ends. Keep it short. A process
// that is stopped in it holds up the others until their deadlines.
//
// Dict, List, Set, Namespace, Value, Array and Queue take part, and objects of registered types
// that are a Saver. Others, and calls that would wait, such as a Get of an empty queue, return
// ErrTxn. So does a Txn within one.
func (m *Manager) Txn(ctx context.Context, f func(tx context.Context) error) error {
	c, err := m.open()
	if err != nil {
		return err
	}
	if c.transaction(ctx) != nil {
		return fmt.Errorf("%w: it has begun already", ErrTxn)
	}
	return c.within(ctx, f)
}

// within runs f in the transaction of ctx, or in one of its own.
func (c *client) within(ctx context.Context, f func(tx context.Context) error) (err error) {
	if c.transaction(ctx) != nil {
		return f(ctx)
	}
	l, err := c.take(ctx)
	if err != nil {
		return err
	}
	t := &transaction{c: c, lane: l}
	ctx = context.WithValue(ctx, transactionKey{}, t)
	if _, err := c.call(ctx, serverBegin.with(nil), nil); err != nil {
		t.giveBack()
		return err
	}
	committed := false
	defer func() {
		if !committed { // also if f panics, or ends its goroutine
			err = errors.Join(err, t.end(ctx, serverRollback))
		}
		t.giveBack()
	}()
	if err := f(ctx); err != nil {
		return err
	}
	committed = true
	return t.end(ctx, serverCommit)
}

// end says how the transaction ends. Where that cannot be said any more the lane is gone, which
// means a rollback.
func (t *transaction) end(ctx context.Context, how *method) error {
	_, err := t.c.call(ctx, how.with(nil), nil)
	if t.failed != nil && how == serverRollback {
		return nil
	}
	return err
}

func (t *transaction) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		t.c.put(t.lane)
	}
}

// call is one call of the transaction. A lane on which a reply is missing cannot be used any more:
// closing it makes the transaction undone.
func (t *transaction) call(ctx context.Context, req request) (reply, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed != nil {
		return reply{}, fmt.Errorf("%w: undone, because a call failed: %w", ErrTxn, t.failed)
	}
	err := context.Cause(ctx)
	if err == nil {
		err = t.lane.Send(ctx, req)
	}
	var r reply
	if err == nil {
		r, err = t.lane.Recv(ctx)
	}
	if err != nil {
		t.failed = err
		t.c.drop(t.lane)
	}
	return r, err
}
