package arena

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/arena/layout"
)

// Note [Early deaths] A process that is being started holds nothing of its argument until it has
// read the argument. Until then its starter holds, as a Delivery, the blocks, the ends of queues
// and a membership of each barrier in its place. Only the starter learns of a process that dies
// before it has read anything. So the starter must do the reaper's work for it: break the barriers,
// and record the death in the rings of the ends. If the starter dies as well, the membership counts
// as its own, and breaks the barriers.
//
// The process may also die after it has read its argument, and be reaped before its starter lets
// go. The starter itself neither sends nor receives by these ends. So Close leaves the dead
// process's name in the ring, whereas a sender that closes its end would withdraw the name.

// A Delivery holds blocks on behalf of processes that are being started. Its methods must not be
// called at the same time.
type Delivery struct {
	d        *Domain
	blocks   []Handle
	barriers []Barrier
}

// Deliver takes a reference of each block. This process must hold the blocks. If Deliver fails, it
// has taken none. The caller must close the Delivery when the processes have read their arguments
// or have died.
func (d *Domain) Deliver(blocks []Handle) (*Delivery, error) {
	v := &Delivery{d: d}
	for _, h := range blocks {
		if err := d.Retain(h); err != nil {
			return nil, errors.Join(err, v.Close())
		}
		v.blocks = append(v.blocks, h)
		if d.formOf(h) != FormBarrier {
			continue
		}
		s, err := d.OpenSync(h, FormBarrier)
		if err != nil {
			return nil, errors.Join(err, v.Close())
		}
		v.barriers = append(v.barriers, Barrier{s})
	}
	return v, nil
}

// formOf returns the form of the [Sync] in block h, or 0 if h is not a Sync. This process must hold
// the block.
func (d *Domain) formOf(h Handle) Form {
	b := &d.mem.Blocks[h.Block()]
	if layout.ExtentKind(b.Extent.Load()) != layout.ObjectSync {
		return 0
	}
	c, err := d.cellOf(b)
	if err != nil {
		return 0
	}
	return Form(c.Form.Load())
}

// Lost records, in the queues and barriers among the blocks, the death of process pid, which was
// to receive the blocks. The process may have had a seat or not. Lost must be called before
// [Delivery.Close].
func (v *Delivery) Lost(pid int) {
	l, err := v.d.acquireLane()
	if err != nil {
		return
	}
	for _, h := range v.blocks {
		l.recordDeath(briefly, &v.d.mem.Blocks[h.Block()], unbornIdentity(pid))
	}
	l.unlock()
	for _, b := range v.barriers {
		b.breakByDeath(pid)
	}
}

// Close drops the references; a second call does nothing. It does not withdraw the names of dead
// holders from rings, as closing an end would: if the other holders of an end have died, their
// death still ends the queue.
func (v *Delivery) Close() (err error) {
	for _, b := range v.barriers {
		if !v.d.closed.Load() {
			b.Close()
		}
	}
	for _, h := range v.blocks {
		err = errors.Join(err, v.d.releaseHandle(h, false))
	}
	v.barriers, v.blocks = nil, nil
	return err
}
