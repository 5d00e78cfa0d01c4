package shm

import "errors"

// Note [Early deaths] A process that is being started holds nothing of its argument until it has
// read it. Until then its starter holds in a Delivery, in place of the process, the blocks, a
// membership of each barrier, and the ends of queues. Only the starter knows of a process that dies
// before it has read anything. So the starter does what the reaper would have done for a process
// that lived longer: it breaks barriers, and writes into a ring, whose last end goes with the
// process, whose death that was. If the starter dies as well, the membership counts as its own, and
// breaks the barrier.

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
	if v.d.closed.Load() {
		return
	}
	for _, b := range v.barriers {
		b.lose(pid)
	}
}

// LostLast is Lost of the last process, and Close: an end that nobody else holds went with it.
func (v *Delivery) LostLast(pid int) error {
	v.Lost(pid)
	l, err := v.d.enter()
	if err != nil {
		return err
	}
	for _, h := range v.blocks {
		l.blameUnborn(h, pid)
	}
	l.unlock()
	return v.Close()
}

// blameUnborn writes into the ring of an end with which process the end goes, if only this delivery
// holds the end. No other process can get the end meanwhile, since it would have to get it from
// here.
func (l *lane) blameUnborn(h Handle, pid int) {
	d, i := l.d, h.index()
	b := &d.blocks[i]
	kind := extKind(b.ext.Load())
	if kind != objectSenders && kind != objectReceivers || b.w.Load().transit() != 0 ||
		d.refs.entry(i).Load()&^refLocked != 1 {
		return
	}
	for j := range b.own {
		others := b.own[j].Load()
		if j == d.word {
			others &^= d.bit
		}
		if others != 0 {
			return
		}
	}
	l.withRing(briefly, b, func(hdr *ring) { hdr.dead[kind-objectSenders].Store(unborn(pid)) })
}

// Close gives the blocks back.
func (v *Delivery) Close() (err error) {
	for _, b := range v.barriers {
		if !v.d.closed.Load() {
			b.Close()
		}
	}
	for _, h := range v.blocks {
		err = errors.Join(err, v.d.Release(h))
	}
	v.barriers, v.blocks = nil, nil
	return err
}
