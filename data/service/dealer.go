package service

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A dealer gives each batch of an epoch to one trainer, which acknowledges it. What a trainer has
// not acknowledged when it is gone goes to another one. It is the part of a data host that Dynamic
// trainers have in common: the first of their addresses.
type dealer struct {
	total  int // batches of an epoch
	ledger *ledger

	mu     sync.Mutex
	grace  *time.Timer // until the dealer begins; nil after that
	epochs map[int]*deal
	ended  map[int]bool // epochs of which all is acknowledged, and no more is known
}

// A deal is what became of the batches of an epoch.
type deal struct {
	free    []int          // the last is dealt next
	held    map[int]*guest // by number: whose it is
	acked   map[int]string // by number: the trainer that has acknowledged it
	waiting []request      // for a batch to be free, or for the end
}

type request struct {
	g  *guest
	id uint64
}

// openEpochs is how many epochs may be open at a time: trainers are in one or two.
const openEpochs = 16

// ackedEpochs is of how many epochs that are over the dealer knows who has acknowledged what, for
// trainers that ask again.
const ackedEpochs = 4

var errEpochs = errors.New("too many epochs at the same time: all trainers of a dealer read one, or the next")

// graceTime is how long a dealer that was started again deals nothing, so that trainers can say
// what they are working on. They try to connect more often than that.
const graceTime = mostWait + 3*time.Second

func newDealer(total int, l *ledger, patience time.Duration) *dealer {
	d := &dealer{total: total, ledger: l, epochs: make(map[int]*deal), ended: make(map[int]bool)}
	for _, a := range l.acks() {
		d.deal(a.epoch).acked[a.number] = a.trainer
	}
	for n, e := range d.epochs {
		e.free = slices.DeleteFunc(e.free, func(k int) bool { return e.acked[k] != "" })
		d.forget(n)
	}
	if l.again {
		d.grace = time.AfterFunc(min(graceTime, patience), d.begin)
	}
	return d
}

// begin ends the grace time.
func (d *dealer) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grace = nil
	for n, e := range d.epochs {
		d.serve(n, e)
	}
}

func (d *dealer) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.grace != nil {
		d.grace.Stop()
	}
	return d.ledger.close()
}

// deal returns an epoch. mu is held.
func (d *dealer) deal(epoch int) *deal {
	e := d.epochs[epoch]
	if e == nil {
		e = &deal{held: make(map[int]*guest), acked: make(map[int]string)}
		for k := d.total - 1; k >= 0; k-- {
			e.free = append(e.free, k)
		}
		d.epochs[epoch] = e
	}
	return e
}

// take takes a batch out of those that are free. mu is held.
func (e *deal) take(number int) {
	if i := slices.Index(e.free, number); i >= 0 {
		e.free = slices.Delete(e.free, i, i+1)
	}
}

// over reports whether all of an epoch is acknowledged. mu is held.
func (d *dealer) over(epoch int) bool {
	e := d.epochs[epoch]
	return d.ended[epoch] || e != nil && len(e.acked) == d.total
}

// forget gives up what is known of the oldest epochs that are over. mu is held.
func (d *dealer) forget(epoch int) {
	if !d.over(epoch) {
		return
	}
	d.ended[epoch] = true
	var done []int
	for n := range d.epochs {
		if d.ended[n] {
			done = append(done, n)
		}
	}
	slices.Sort(done)
	for ; len(done) > ackedEpochs; done = done[1:] {
		delete(d.epochs, done[0])
	}
}

// next answers a trainer with a batch that nobody else has, at once or when there is one, or with
// the end of the epoch.
func (d *dealer) next(g *guest, f frame) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over(f.Epoch) || d.total == 0 {
		g.reply(frame{Kind: frameDealt, ID: f.ID, Epoch: f.Epoch, Number: -1})
		return nil
	}
	open := 0
	for n := range d.epochs {
		if !d.ended[n] {
			open++
		}
	}
	if f.Epoch < 0 || d.epochs[f.Epoch] == nil && open >= openEpochs {
		g.reply(frame{Kind: frameFailed, ID: f.ID, Err: errEpochs})
		return nil
	}
	e := d.deal(f.Epoch)
	if len(e.waiting) > mostAsked*openEpochs {
		return errTooMany
	}
	e.waiting = append(e.waiting, request{g, f.ID})
	d.serve(f.Epoch, e)
	return nil
}

// serve gives what there is to those that wait. mu is held.
func (d *dealer) serve(epoch int, e *deal) {
	for len(e.waiting) > 0 && d.grace == nil {
		n := -1
		if len(e.acked) < d.total {
			if len(e.free) == 0 {
				return
			}
			n = e.free[len(e.free)-1]
			e.free = e.free[:len(e.free)-1]
		}
		r := e.waiting[0]
		e.waiting = e.waiting[1:]
		if n >= 0 {
			e.held[n] = r.g
		}
		r.g.reply(frame{Kind: frameDealt, ID: r.id, Epoch: epoch, Number: n})
	}
}

// acknowledge enters that a trainer has used a batch. It may do so again. It may not if the batch
// was given to another one meanwhile. The ledger knows before the trainer does.
func (d *dealer) acknowledge(g *guest, f frame) {
	answer := frame{Kind: frameAcked, ID: f.ID, Samples: 1}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.epochs[f.Epoch]
	switch {
	case e == nil || f.Number < 0 || f.Number >= d.total || f.Trainer == "":
		answer.Samples = 0
	case e.acked[f.Number] != "":
		if e.acked[f.Number] != f.Trainer {
			answer.Samples = 0
		}
	case e.held[f.Number] != nil && e.held[f.Number] != g:
		answer.Samples = 0
	default:
		if err := d.ledger.add(ack{f.Epoch, f.Number, f.Trainer}); err != nil {
			answer = frame{Kind: frameFailed, ID: f.ID, Err: err}
			break
		}
		e.acked[f.Number] = f.Trainer
		if e.held[f.Number] == nil {
			e.take(f.Number)
		}
		delete(e.held, f.Number)
		d.serve(f.Epoch, e)
		d.forget(f.Epoch)
	}
	g.reply(answer)
}

// hold enters that a trainer works on a batch that a dealer before this one has given to it, unless
// somebody else has it.
func (d *dealer) hold(g *guest, f frame) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.Epoch < 0 || f.Number < 0 || f.Number >= d.total || d.grace == nil || d.over(f.Epoch) {
		return
	}
	e := d.deal(f.Epoch)
	if e.held[f.Number] == nil && e.acked[f.Number] == "" {
		e.take(f.Number)
		e.held[f.Number] = g
	}
}

// giveBack gives a batch that a trainer does not want to others.
func (d *dealer) giveBack(g *guest, f frame) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.epochs[f.Epoch]
	if e == nil || e.held[f.Number] != g {
		return
	}
	delete(e.held, f.Number)
	e.free = append(e.free, f.Number)
	d.serve(f.Epoch, e)
}

// cancel forgets that a trainer waits.
func (d *dealer) cancel(g *guest, id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.epochs {
		e.waiting = slices.DeleteFunc(e.waiting, func(r request) bool { return r == request{g, id} })
	}
}

// leave gives to others what a trainer had.
func (d *dealer) leave(g *guest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n, e := range d.epochs {
		e.waiting = slices.DeleteFunc(e.waiting, func(r request) bool { return r.g == g })
		var back []int
		for k, of := range e.held {
			if of == g {
				delete(e.held, k)
				back = append(back, k)
			}
		}
		slices.Sort(back)
		slices.Reverse(back)
		e.free = append(e.free, back...)
		d.serve(n, e)
	}
}

// counts returns how many batches are with trainers, and how many were acknowledged in the epochs
// that it knows.
func (d *dealer) counts() (held, acked int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.epochs {
		held += len(e.held)
		acked += len(e.acked)
	}
	return held, acked
}

// errLedger is what a trainer hears if the dealer cannot write.
func errLedger(err error) error { return fmt.Errorf("%w: %w", ErrLedger, err) }
