package arena

import "errors"

// Note [Early deaths] A process that is being started holds nothing of its argument until it has
// read it. Until then its starter holds in a Delivery, in place of the process, the blocks, a
// membership of each barrier, and the ends of queues. Only the starter knows of a process that dies
// before it has read anything. So the starter does what the reaper would have done for a process
// that lived longer: it breaks barriers, and writes into the rings of ends whose death it was. If
// the starter dies as well, the membership counts as its own, and breaks the barrier.
//
// The process may also die when it has read its argument, and be reaped before its starter lets go.
// The starter sends and receives nothing by these ends. So its Close leaves the name of the dead in
// the ring, where that of a sender would take the name back.

// A Delivery holds blocks for processes that are being started. Its methods are called by one
// goroutine at a time.
type Delivery struct {
	d        *Domain
	blocks   []Handle
	barriers []Barrier
}

// Deliver takes a reference of each block, which this process holds, all or none.
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

// formOf returns the form of the Sync in a block that this process holds, 0 if it is none.
func (d *Domain) formOf(h Handle) Form {
	b := &d.blocks[h.index()]
	if extKind(b.ext.Load()) != objectSync {
		return 0
	}
	c, err := d.cellOf(b)
	if err != nil {
		return 0
	}
	return Form(c.form.Load())
}

// Lost is called when a process died to which the blocks were to go. It may have had no seat yet.
func (v *Delivery) Lost(pid int) {
	l, err := v.d.enter()
	if err != nil {
		return
	}
	for _, h := range v.blocks {
		l.blame(briefly, &v.d.blocks[h.index()], unborn(pid))
	}
	l.unlock()
	for _, b := range v.barriers {
		b.lose(pid)
	}
}

// Close gives the blocks back. It closes no end: if those that held one have died, their death ends
// it still.
func (v *Delivery) Close() (err error) {
	for _, b := range v.barriers {
		if !v.d.closed.Load() {
			b.Close()
		}
	}
	for _, h := range v.blocks {
		err = errors.Join(err, v.d.letGo(h, false))
	}
	v.barriers, v.blocks = nil, nil
	return err
}
