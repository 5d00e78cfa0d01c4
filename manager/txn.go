package manager

import (
	"context"
	"errors"
	"fmt"
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
	c    *client
	lane lane[request, reply]

	turn   chan struct{} // has the one call that is going on, for which others wait as long as their contexts
	failed error         // the lane is gone; with the turn
}

type transactionKey struct{}

func (c *client) transaction(ctx context.Context) *transaction {
	if t, _ := ctx.Value(transactionKey{}).(*transaction); t != nil && t.c == c {
		return t
	}
	return nil
}

// Txn runs f as a transaction. The server does no other call between the first and the last call of
// f. If f returns an error, the server undoes all changes of the calls of f. A call belongs to the
// transaction if its context is tx or derived from tx:
//
//	err := m.Txn(ctx, func(tx context.Context) error {
//		if err := from.Add(tx, -10); err != nil { … }
//		return to.Add(tx, 10)
//	})
//
// The server also undoes the transaction when f panics, when a call of f outlasts its deadline, and
// when this process dies. All other calls wait until the transaction ends. So keep f short: a
// process that is stopped in f holds up all others until their deadlines. A call in f with another
// context than tx waits for ever, unless its context ends.
//
// Dict, List, Set, Namespace, Value, Array, Queue and registered types with a Save method ([Saver])
// take part. A call of another object returns ErrTxn. So does a call that would wait, such as a Get
// of an empty queue, and a Txn within f.
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
	t := &transaction{c: c, turn: make(chan struct{}, 1), lane: l}
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
	if err == nil {
		return nil
	}
	t.c.drop(t.lane) // another call may have it still, and ends then
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	if t.failed != nil && how == serverRollback {
		return nil
	}
	return err
}

func (t *transaction) giveBack() {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	if t.failed == nil {
		t.c.put(t.lane)
	}
}

// call is one call of the transaction. A lane on which a reply is missing cannot be used any more:
// closing it makes the transaction undone.
func (t *transaction) call(ctx context.Context, req request) (reply, error) {
	select {
	case t.turn <- struct{}{}:
	default:
		select {
		case t.turn <- struct{}{}:
		case <-ctx.Done():
			return reply{}, context.Cause(ctx)
		}
	}
	defer func() { <-t.turn }()
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
