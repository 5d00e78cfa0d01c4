package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/goexit"
)

// An undo is the saved state of an object. One of its two functions must be called.
type undo struct {
	restore func() // restores the saved state
	discard func() // releases the saved state
}

// A txn is the server's state of a transaction in progress.
type txn struct {
	s       *server
	touched map[*object]undo
}

// saveObject saves the state of an object before the transaction first uses it, and does nothing
// at later uses. o.mu must be held. It returns [ErrTxn] if the object cannot be rolled back.
func (t *txn) saveObject(o *object) error {
	if _, ok := t.touched[o]; ok {
		return nil
	}
	s, ok := o.state.(saver)
	if !ok {
		return fmt.Errorf("%w: type %s cannot be rolled back", ErrTxn, o.kind.name)
	}
	t.touched[o] = s.saveState(t.s.d)
	return nil
}

// endTxn commits the transaction, or rolls it back if commit is false, and admits other calls
// again. It must be called once.
func (t *txn) endTxn(commit bool) {
	for o, u := range t.touched {
		goexit.Isolate("manager: restore function of "+o.kind.name, func() { // may be the program's
			o.mu.Lock()
			defer o.mu.Unlock()
			defer o.changed.broadcast()
			if commit || o.gone {
				u.discard()
			} else {
				u.restore()
			}
		})
	}
	t.s.gate.unlockExclusive()
}

// A transaction is the client's state of a transaction. It is stored in the context that
// [Manager.Txn] passes to its function, and calls with that context use its lane, one at a time.
type transaction struct {
	c    *client
	lane lane[request, reply]

	turn   chan struct{} // semaphore held by the call in progress
	failed error         // why the lane was closed; guarded by turn
}

type transactionKey struct{}

func (c *client) transaction(ctx context.Context) *transaction {
	if t, _ := ctx.Value(transactionKey{}).(*transaction); t != nil && t.c == c {
		return t
	}
	return nil
}

// Txn runs f as a transaction, and returns the error of f, or an error if the commit fails.
// Between the first and the last call of f, the server executes no other calls. If f returns an
// error, the server undoes all changes made by the calls of f. A call is part of the transaction
// if its context is tx or derived from tx:
//
//	err := m.Txn(ctx, func(tx context.Context) error {
//		if err := from.Add(tx, -10); err != nil { … }
//		return to.Add(tx, 10)
//	})
//
// The transaction is also rolled back if f panics, if a call of f exceeds its deadline, and if
// this process dies. All other calls block until the transaction ends. f should therefore be
// short: a process that is stopped in f blocks all others until their deadlines. f must not make
// calls with other contexts than tx: such a call blocks until its context is done.
//
// Dict, List, Set, Namespace, Value, Array, Queue and registered types that implement [Saver]
// can take part. A call on another object returns [ErrTxn]. So does a call that would block,
// such as a Get from an empty queue, and a Txn within f.
func (m *Manager) Txn(ctx context.Context, f func(tx context.Context) error) error {
	c, err := m.openClient()
	if err != nil {
		return err
	}
	if c.transaction(ctx) != nil {
		return fmt.Errorf("%w: a transaction has already begun", ErrTxn)
	}
	return c.runInTransaction(ctx, f)
}

// runInTransaction runs f in the transaction of ctx, which then goes on, or else in a new one,
// which it commits if f returns nil and rolls back otherwise. f must use the context tx for its
// calls. It returns the error of f or of the commit.
func (c *client) runInTransaction(ctx context.Context, f func(tx context.Context) error) (err error) {
	if c.transaction(ctx) != nil {
		return f(ctx)
	}
	l, err := c.acquireLane(ctx)
	if err != nil {
		return err
	}
	t := &transaction{c: c, turn: make(chan struct{}, 1), lane: l}
	ctx = context.WithValue(ctx, transactionKey{}, t)
	if _, err := c.call(ctx, serverBegin.newRequest(nil), nil); err != nil {
		t.returnLane()
		return err
	}
	committed := false
	defer func() {
		if !committed { // also if f panics or calls runtime.Goexit
			err = errors.Join(err, t.endTransaction(ctx, serverRollback))
		}
		t.returnLane()
	}()
	if err := f(ctx); err != nil {
		return err
	}
	committed = true
	return t.endTransaction(ctx, serverCommit)
}

// endTransaction commits or rolls back the transaction with the method how, [serverCommit] or
// [serverRollback]. If the call fails, the lane is closed, which also rolls back the
// transaction.
func (t *transaction) endTransaction(ctx context.Context, how *method) error {
	_, err := t.c.call(ctx, how.newRequest(nil), nil)
	if err == nil {
		return nil
	}
	t.c.closeLane(t.lane) // aborts a call in progress
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	if t.failed != nil && how == serverRollback {
		return nil
	}
	return err
}

func (t *transaction) returnLane() {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	if t.failed == nil {
		t.c.releaseLane(t.lane)
	}
}

// call makes one call of the transaction. It waits for the other calls of the transaction first.
// If its reply does not arrive, call returns the error, and the lane is closed, which rolls back
// the transaction. Later calls return [ErrTxn].
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
		return reply{}, fmt.Errorf("%w: rolled back because a call failed: %w", ErrTxn, t.failed)
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
		t.c.closeLane(t.lane)
	}
	return r, err
}
