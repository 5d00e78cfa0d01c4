package service

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A dealer assigns each batch of an epoch to one trainer, which must acknowledge it. When a
// trainer disconnects, its unacknowledged batches are assigned to others. The dealer runs in the
// data host at the first address of the Dynamic trainers. Methods that do not ask for d.mu may
// be called from several goroutines.
type dealer struct {
	total  int // batches per epoch
	ledger *ledger

	mu     sync.Mutex
	grace  *time.Timer // running until the grace period ends; nil afterwards
	epochs map[int]*deal
	ended  map[int]bool // finished epochs: every batch was acknowledged
}

// A deal is the state of the batches of one epoch. It is guarded by the dealer's mu.
type deal struct {
	free    []int          // stack of unassigned batches
	held    map[int]*guest // batch number to the trainer that holds it
	acked   map[int]string // batch number to the name of the trainer that acknowledged it
	waiting []request      // requests waiting for a free batch, or for the end of the epoch
}

type request struct {
	g  *guest
	id uint64
}

// openEpochs is the maximum number of unfinished epochs. Trainers normally read one or two.
const openEpochs = 16

// ackedEpochs is the number of finished epochs for which the dealer keeps the acknowledgements, so
// that a trainer may repeat one.
const ackedEpochs = 4

var errEpochs = errors.New("too many concurrent epochs: trainers of a dealer must read the same epoch or the next")

// graceTime is the period after a restart while the dealer assigns no batches, so that trainers
// can reconnect and reclaim the batches they work on. It must exceed their longest pause between
// connection attempts.
const graceTime = mostWait + 3*time.Second

func newDealer(total int, l *ledger, patience time.Duration) *dealer {
	d := &dealer{total: total, ledger: l, epochs: make(map[int]*deal), ended: make(map[int]bool)}
	for _, a := range l.takeAcks() {
		d.epochDeal(a.epoch).acked[a.number] = a.trainer
	}
	for n, e := range d.epochs {
		e.free = slices.DeleteFunc(e.free, func(k int) bool { return e.acked[k] != "" })
		d.dropFinished(n)
	}
	if l.again {
		d.grace = time.AfterFunc(min(graceTime, patience), d.endGracePeriod)
	}
	return d
}

// endGracePeriod begins to assign batches. A timer calls it once, at the end of the grace
// period. The caller must not hold d.mu.
func (d *dealer) endGracePeriod() {
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

// epochDeal returns the state of an epoch and creates it if necessary. The caller must hold d.mu.
func (d *dealer) epochDeal(epoch int) *deal {
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

// takeFree removes a batch from the free ones, if it is free. The caller must hold the dealer's
// mu.
func (e *deal) takeFree(number int) {
	if i := slices.Index(e.free, number); i >= 0 {
		e.free = slices.Delete(e.free, i, i+1)
	}
}

// isFinished reports whether all batches of an epoch are acknowledged. The caller must hold d.mu.
func (d *dealer) isFinished(epoch int) bool {
	e := d.epochs[epoch]
	return d.ended[epoch] || e != nil && len(e.acked) == d.total
}

// dropFinished marks the epoch as finished if it is, and deletes the state of the oldest finished
// epochs. The caller must hold d.mu.
func (d *dealer) dropFinished(epoch int) {
	if !d.isFinished(epoch) {
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

// assignBatch answers a request for a batch. It replies with a free batch, now or as soon as there
// is one, with number -1 if the epoch is finished, or with errEpochs if the epoch is negative or
// too many are open. It does not wait for the reply, and locks d.mu. An error means that the
// trainer violated the protocol.
func (d *dealer) assignBatch(g *guest, f frame) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isFinished(f.Epoch) || d.total == 0 {
		g.queueReply(frame{Kind: frameDealt, ID: f.ID, Epoch: f.Epoch, Number: -1})
		return nil
	}
	open := 0
	for n := range d.epochs {
		if !d.ended[n] {
			open++
		}
	}
	if f.Epoch < 0 || d.epochs[f.Epoch] == nil && open >= openEpochs {
		g.queueReply(frame{Kind: frameFailed, ID: f.ID, Err: errEpochs})
		return nil
	}
	e := d.epochDeal(f.Epoch)
	if len(e.waiting) > mostAsked*openEpochs {
		return errTooMany
	}
	e.waiting = append(e.waiting, request{g, f.ID})
	d.serve(f.Epoch, e)
	return nil
}

// serve assigns free batches to waiting requests. The caller must hold d.mu.
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
		r.g.queueReply(frame{Kind: frameDealt, ID: r.id, Epoch: epoch, Number: n})
	}
}

// recordAck records that a trainer has used a batch, and replies whether that is valid. It is
// idempotent. It is invalid if the batch was assigned to another trainer meanwhile. The ledger is
// written before the reply is sent.
func (d *dealer) recordAck(g *guest, f frame) {
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
			e.takeFree(f.Number)
		}
		delete(e.held, f.Number)
		d.serve(f.Epoch, e)
		d.dropFinished(f.Epoch)
	}
	g.queueReply(answer)
}

// restoreBatch records, during the grace period, that a trainer works on a batch that it got before
// the dealer restarted. It is a no-op if the batch is acknowledged or assigned already.
func (d *dealer) restoreBatch(g *guest, f frame) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.Epoch < 0 || f.Number < 0 || f.Number >= d.total || d.grace == nil || d.isFinished(f.Epoch) {
		return
	}
	e := d.epochDeal(f.Epoch)
	if e.held[f.Number] == nil && e.acked[f.Number] == "" {
		e.takeFree(f.Number)
		e.held[f.Number] = g
	}
}

// returnBatch returns a batch that a trainer does not use, so that others get it. It is a no-op
// if the batch is not assigned to g.
func (d *dealer) returnBatch(g *guest, f frame) {
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

// cancelRequest removes a waiting request of a trainer, if it still waits.
func (d *dealer) cancelRequest(g *guest, id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.epochs {
		e.waiting = slices.DeleteFunc(e.waiting, func(r request) bool { return r == request{g, id} })
	}
}

// handleDisconnect handles the disconnection of a trainer. Its requests are removed, and its
// batches become free again.
func (d *dealer) handleDisconnect(g *guest) {
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

// countBatches returns the number of assigned batches, and the number of acknowledged batches in
// the epochs that the dealer keeps.
func (d *dealer) countBatches() (held, acked int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.epochs {
		held += len(e.held)
		acked += len(e.acked)
	}
	return held, acked
}

// wrapLedger wraps an error of the ledger with [ErrLedger].
func wrapLedger(err error) error { return fmt.Errorf("%w: %w", ErrLedger, err) }
