package shm

func (b *block) owned() bool {
	return b.own[0].Load()|b.own[1].Load()|b.own[2].Load()|b.own[3].Load() != 0
}

// tryFree frees the block if nobody holds it: no participant's bit, no message. The stamp freezes
// arrivals, since with t = 0 only a holder could send the block, so the four words of own may be
// read one after the other. A holder that clears its bit while we look sees the stamp and leaves,
// so we look once more after we have cleared it.
func (l *lane) tryFree(index uint32) {
	b := &l.d.blocks[index]
	for {
		w := b.w.Load()
		if w&(allocBit|tMask|xoMask) != allocBit || b.owned() {
			return
		}
		if !b.w.CAS(w, w|stamp(l.id, kindFree)) {
			continue
		}
		if b.owned() && !disabled("owners under the stamp") {
			l.d.unstamp(b)
			continue
		}
		if extKind(b.ext.Load()) != objectNone {
			l.d.markGone(b)
			l.finalise(b)
		}
		l.d.change(b, allocBit, genOne)
		l.d.trimmer.freed(l.d, b)
		l.putBack(index)
		l.d.relieve()
		return
	}
}

// markGone tells who waits for the FREE stamp that there is no use in it.
func (d *Domain) markGone(b *block) {
	w := b.w.Load()
	for !b.w.CAS(w, w|goneBit) {
		w = b.w.Load()
	}
	if w&waitBit != 0 {
		d.wakeBits(&d.hdr.xowait)
	}
}

// finalise ends what the block means to the protocol: it runs under the FREE stamp, and again from
// the start in a reaper if its process dies in the middle.
func (l *lane) finalise(b *block) {
	e := b.ext.Load()
	switch extKind(e) {
	case objectNone:
		return
	case objectRing:
		// Held while it is drained: if we die in a slot of it, nobody who is late with its try-free
		// may free the ring before a reaper has ended our get.
		i := l.d.indexOf(b)
		l.d.acquire(i)
		l.drain(b)
		l.d.drop(i)
	case objectSenders:
		l.endGone(b, ringNoSenders)
	case objectReceivers:
		l.endGone(b, ringNoReceivers)
	}
	if extClass(e) == 0 {
		b.ext.Store(0)
	} else {
		b.ext.Store(e &^ extKindMask)
	}
}
