//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
)

const accountsOf, clients, fortune = 4, 5, 10_000

const theManagersMutex = 10 // ID in the ledger

// A clientJob holds the objects that the clients of a manager share.
type clientJob struct {
	Number   uint64
	Book     string
	M        *manager.Manager
	Accounts *manager.Array[int] // constant sum
	Count    *manager.Value[int]
	Box      *manager.Queue[uint64]
	Mutex    *manager.Mutex
	Lists    *manager.Dict[string, *manager.List[int]]
}

var clientWork = shoal.Register("torture client", func(ctx context.Context, _ int, j clientJob) error {
	return j.work(ctx)
})

// work performs random actions, including more, until ctx is done or the server dies. It returns
// nil in both cases, and records the server's death in the ledger. Otherwise it returns the
// first error of an action.
func (j clientJob) work(ctx context.Context, more ...func(c *client, ctx context.Context) error) error {
	p, err := openPen(j.Book)
	if err != nil {
		return err
	}
	c := &client{clientJob: j, pen: p, rand: rand.New(rand.NewPCG(j.Number, 3))}
	deeds := []func(context.Context) error{c.pay, c.pay, c.count, c.put, c.get, c.mutex, c.list}
	for _, deed := range more {
		deeds = append(deeds, func(ctx context.Context) error { return deed(c, ctx) })
	}
	for ctx.Err() == nil {
		err := deeds[c.rand.IntN(len(deeds))](ctx)
		if errors.Is(err, manager.ErrServerDied) {
			c.pen.write(none, orphan)
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("client %d: %w", j.Number, err)
		}
	}
	return nil
}

// orphan is the ID that a client records if its server has died.
const orphan = 1 << 60

// counted is a flag in the IDs of additions, which distinguishes them from the values of the queue.
const counted = 1 << 59

// A client is the state of a process that calls a manager. Its methods perform one action each.
type client struct {
	clientJob
	pen
	rand *rand.Rand
	seq  uint64
}

func (c *client) number() uint64 {
	c.seq++
	return c.Number<<24 | c.seq
}

// pay transfers an amount in a transaction, which is rolled back from time to time.
func (c *client) pay(ctx context.Context) error {
	from, to, sum := c.rand.IntN(accountsOf), c.rand.IntN(accountsOf), c.rand.IntN(100)
	changed := errors.New("changed my mind")
	err := c.M.Txn(ctx, func(tx context.Context) error {
		if _, err := c.Accounts.Add(tx, from, -sum); err != nil {
			return err
		}
		if c.rand.IntN(4) == 0 {
			return changed
		}
		_, err := c.Accounts.Add(tx, to, sum)
		return err
	})
	return forgive(err, changed)
}

func (c *client) count(ctx context.Context) error {
	id := c.number() | counted
	c.pen.write(begins, id)
	_, err := c.Count.Add(ctx, 1)
	if err == nil {
		c.pen.write(ends, id)
	}
	return err
}

func (c *client) put(ctx context.Context) error {
	id := c.number()
	c.pen.write(begins, id)
	err := c.Box.TryPut(ctx, id)
	if err == nil {
		c.pen.write(ends, id)
	}
	return forgive(err)
}

func (c *client) get(ctx context.Context) error {
	c.pen.write(takes, 0)
	id, err := c.Box.TryGet(ctx)
	if err != nil {
		c.pen.write(none, 0)
		return forgive(err)
	}
	c.pen.write(gets, id)
	return nil
}

func (c *client) mutex(ctx context.Context) error {
	if err := c.Mutex.Lock(ctx); errors.Is(err, ipc.ErrOwnerDied) {
		if err := c.Mutex.MarkConsistent(ctx); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	c.pen.write(enters, theManagersMutex)
	time.Sleep(time.Duration(c.rand.IntN(200)) * time.Microsecond)
	c.pen.write(leaves, theManagersMutex)
	return c.Mutex.Unlock(ctx)
}

// list creates a list and stores it in the dictionary, where another client may find it.
func (c *client) list(ctx context.Context) error {
	l, err := manager.NewList(ctx, c.M, 1, 2, 3)
	if err != nil {
		return err
	}
	return errors.Join(c.Lists.Set(ctx, fmt.Sprint(c.rand.IntN(5)), l), l.Close())
}

// managerStorm kills clients of a manager, and then its server. It reports violations to s.
func managerStorm(s *storm) error { return errors.Join(clientStorm(s, clientWork), bereave(s)) }

func clientStorm(s *storm, work *shoal.Func[clientJob]) error {
	m, err := manager.Start(s.ctx)
	if err != nil {
		return err
	}
	server := shoal.ActiveChildren()[0]
	j := clientJob{Book: s.path, M: m}
	var errs [5]error
	j.Accounts, errs[0] = manager.NewArray(s.ctx, m, fortune, fortune, fortune, fortune)
	j.Count, errs[1] = manager.NewValue(s.ctx, m, 0)
	j.Box, errs[2] = manager.NewQueue[uint64](s.ctx, m, 64)
	j.Mutex, errs[3] = manager.NewMutex(s.ctx, m)
	j.Lists, errs[4] = manager.NewDict[string, *manager.List[int]](s.ctx, m)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	audit := func(ctx context.Context) error {
		return m.Txn(ctx, func(tx context.Context) error {
			sum := 0
			for i := range accountsOf {
				n, err := j.Accounts.Get(tx, i)
				if err != nil {
					return err
				}
				sum += n
			}
			if sum != accountsOf*fortune {
				s.wrong(&s.seen.Twice, 1, "a transaction sees %d in all, not %d", sum, accountsOf*fortune)
			}
			return nil
		})
	}
	audits, stop := context.WithCancel(s.ctx)
	audited := make(chan error, 1)
	go func() {
		for audits.Err() == nil {
			if err := audit(audits); err != nil && audits.Err() == nil {
				audited <- err
				return
			}
			time.Sleep(time.Millisecond)
		}
		audited <- nil
	}()
	s.keep(clients, func(g *shoal.Group, n uint64) *shoal.Process {
		j := j
		j.Number = n
		return work.Go(g, j)
	}, server.PID())
	stop()
	err = <-audited
	ctx, cancel := s.timeoutContext()
	defer cancel()
	err = errors.Join(err, audit(ctx), forgive(j.Mutex.Lock(ctx), ipc.ErrOwnerDied))
	all := s.book.readEntries()
	alone(s, all, theManagersMutex, 1)
	a, doubtful := accounts(all)
	for {
		id, failed := j.Box.TryGet(ctx)
		if failed != nil {
			err = errors.Join(err, forgive(failed))
			break
		}
		a.got[id]++
	}
	count, failed := j.Count.Get(ctx)
	err = errors.Join(err, failed)
	err = errors.Join(err, j.Mutex.Unlock(ctx))
	if ctx.Err() != nil {
		s.wrong(&s.seen.Hangs, 1, "the manager does not answer: %v", err)
	}
	least, most := a.removeEntries(counted)
	if count < least || count > most {
		s.wrong(&s.seen.Lost, 1, "%d additions, want %d to %d", count, least, most)
	}
	a.judge(s, doubtful)
	return errors.Join(err, j.Accounts.Close(), j.Count.Close(), j.Box.Close(), j.Mutex.Close(), j.Lists.Close(),
		m.Close())
}

// removeEntries removes the entries with IDs that have the given bit, and returns the numbers of
// their puts that had ended and that had begun.
func (a account) removeEntries(bit uint64) (ended, begun int) {
	for id := range a.begun {
		if id&bit != 0 {
			begun++
			ended += a.put[id]
			delete(a.begun, id)
			delete(a.put, id)
		}
	}
	return ended, begun
}

// bereave kills the server of a manager and reports a violation to s unless each of its clients
// is notified.
func bereave(s *storm) error {
	m, err := manager.Start(s.ctx)
	if err != nil {
		return err
	}
	server := shoal.ActiveChildren()[0]
	j := clientJob{Book: s.path, M: m}
	var errs [5]error
	j.Accounts, errs[0] = manager.NewArray(s.ctx, m, fortune, fortune, fortune, fortune)
	j.Count, errs[1] = manager.NewValue(s.ctx, m, 0)
	j.Box, errs[2] = manager.NewQueue[uint64](s.ctx, m, 64)
	j.Mutex, errs[3] = manager.NewMutex(s.ctx, m)
	j.Lists, errs[4] = manager.NewDict[string, *manager.List[int]](s.ctx, m)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	g := shoal.NewGroup(s.ctx, shoal.Options{Workers: clients})
	var pids []int
	for i := range clients {
		j.Number = 1<<20 + uint64(i)
		pids = append(pids, clientWork.Go(g, j).PID())
	}
	s.eventually(func() bool {
		for _, pid := range pids {
			if !s.book.knows(pid) {
				return false
			}
		}
		return true
	})
	s.kill(server)
	done := make(chan error, 1)
	go func() { done <- g.Wait() }()
	select {
	case err = <-done:
	case <-time.After(s.patience):
		s.wrong(&s.seen.Hangs, 1, "clients of a dead server wait")
		err = g.Close()
	}
	orphans := 0
	for _, e := range s.book.readEntries() {
		if e.ID == orphan {
			orphans++
		}
	}
	if orphans != clients {
		s.wrong(&s.seen.Hangs, 1, "%d of %d clients heard of the death of their server", orphans, clients)
	}
	if err := m.Close(); err != nil && !errors.Is(err, manager.ErrServerDied) && !s.explained(err) {
		return err
	}
	for _, c := range []interface{ Close() error }{j.Accounts, j.Count, j.Box, j.Mutex, j.Lists} {
		if failed := c.Close(); failed != nil && !errors.Is(failed, manager.ErrServerDied) {
			err = errors.Join(err, failed)
		}
	}
	return err
}
