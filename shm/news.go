package shm

import "context"

// A ring of news is one whose newest message everybody can read, while it stays in its slot. A
// message is the newest until a later one is FULL, and only who puts takes the older ones out: so
// there is a newest one from the first put on, whoever dies. Reading is a lookup on the board:
// copy, acquire, and look at the slot's word again.

// News reports whether r is a ring of news.
func (r *Ring) News() bool { return r.news }

// Peek copies the newest message of a ring of news, which stays there. This process then holds each
// of its blocks once more, as after a get. The version grows with each put; it is never less than
// any that was returned before, in any process. The error is ErrEmpty before the first put.
func (r *Ring) Peek(m *Message) (version uint64, err error) {
	l, err := r.d.enter()
	if err != nil {
		return 0, err
	}
	defer l.unlock()
	for {
		tail := r.hdr.tail.Load()
		tk, s, w := r.newest(tail)
		if s == nil {
			if r.hdr.tail.Load() == tail {
				return 0, ErrEmpty
			}
			continue
		}
		ok, err := r.peekAll(l, s, w, m, 0)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		if r.hdr.tail.Load() == tail {
			return tk + 1, nil
		}
		m.drop(l) // a newer one may have been seen by others before this one was found
	}
}

// drop is Discard in a lane.
func (m *Message) drop(l *lane) {
	m.Body = nil
	if m.spill != 0 {
		l.release(m.spill.index())
		m.spill = 0
	}
	for _, h := range m.Blocks {
		l.release(h.index())
	}
	m.Blocks = nil
}

// newest returns the last FULL slot before the ticket tail, and its word; nil if there is none.
func (r *Ring) newest(tail uint64) (tk uint64, s *slot, w uint64) {
	for tk = tail; tk > 0 && tail-tk < r.cap; {
		tk--
		if s, w := r.full(tk); s != nil {
			return tk, s, w
		}
	}
	return 0, nil, 0
}

// full returns the slot of a ticket, and its word, if its message is there.
func (r *Ring) full(tk uint64) (*slot, uint64) {
	if !r.backed(tk) {
		return nil, 0
	}
	s := r.slot(tk)
	w := s.word.Load()
	if slotState(w) != slotFull || slotLap(w) != tk>>r.bits {
		return nil, 0
	}
	return s, w
}

// Version returns that of the newest message, 0 before the first.
func (r *Ring) Version() uint64 {
	tail := r.hdr.tail.Load()
	if tk, s, _ := r.newest(tail); s != nil {
		return tk + 1
	}
	return 0
}

// DropOld takes all messages out but the newest. One process at a time puts and drops: that is the
// caller's affair.
func (r *Ring) DropOld() {
	var m Message
	for r.hasOld() && r.TryGet(&m) == nil {
		m.Discard()
	}
}

// hasOld reports whether there is a message besides the newest.
func (r *Ring) hasOld() bool {
	tk, s, _ := r.newest(r.hdr.tail.Load())
	if s == nil {
		return false
	}
	_, s, _ = r.newest(tk)
	return s != nil
}

// AwaitNews waits until the version is greater than that one, until ctx ends, or until nobody can
// put any more.
func (r *Ring) AwaitNews(ctx context.Context, version uint64) error {
	news := func() bool { return r.Version() > version || r.over() || r.finished(ringFinished) }
	if err := r.d.park.await(ctx, r.d, &r.hdr.notEmpty, news, nil); err != nil && !news() {
		return err
	}
	if r.over() {
		return ErrClosed
	}
	if r.Version() <= version {
		return ErrFinished
	}
	return nil
}
