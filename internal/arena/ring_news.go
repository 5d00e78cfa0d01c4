package arena

import "context"

// A ring of news is one whose newest message everybody can read, while it stays in its slot. A
// message is the newest until a later one is FULL, and only a process that puts takes the older
// ones out. So there is a newest one from the first put on, whichever process dies. Reading is a
// lookup on the board: copy, acquire, and look at the slot's word again.

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
		tk, s, w := r.newest()
		if s == nil {
			return 0, ErrEmpty
		}
		ok, err := r.peekAll(l, s, w, m, 0)
		if err != nil {
			return 0, err
		}
		if ok {
			return tk + 1, nil
		}
	}
}

// newest returns the newest message's ticket, slot and word; no slot before the first put. While
// others put and take the old ones out, a look at one slot after the other may come to each too
// early or too late. So it believes that there is none when two looks saw the same words, which
// only grow.
func (r *Ring) newest() (tk uint64, s *slot, w slotWord) {
	for before, again := uint64(0), false; ; again = true {
		var sum uint64
		tk, s, w, sum = r.lastFull(r.hdr.tail.Load())
		if s != nil || again && sum == before {
			return tk, s, w
		}
		before = sum
	}
}

// lastFull returns the last FULL slot before the ticket tail, and its word; no slot if it saw none.
// The sum is of tail and of all the words that it saw.
func (r *Ring) lastFull(tail uint64) (tk uint64, s *slot, w slotWord, sum uint64) {
	sum = tail
	for tk = tail; tk > 0 && tail-tk < r.cap; {
		tk--
		if !r.backed(tk) {
			continue
		}
		s := r.slot(tk)
		w := s.word.Load()
		if w.state() == slotFull && w.lap() == r.lap(tk) {
			return tk, s, w, sum
		}
		sum += uint64(w)
	}
	return 0, nil, 0, sum
}

// Version returns that of the newest message, 0 before the first.
func (r *Ring) Version() uint64 {
	if tk, s, _ := r.newest(); s != nil {
		return tk + 1
	}
	return 0
}

// DropOld takes all messages out but the newest. The caller sees to it that one
// process at a time puts and drops.
func (r *Ring) DropOld() {
	var m Message
	for r.hasOld() && r.tryGet(briefly, &m) == nil {
		m.Discard()
	}
}

// hasOld reports whether there is a message besides the newest.
func (r *Ring) hasOld() bool {
	tk, s, _ := r.newest()
	if s == nil {
		return false
	}
	_, s, _, _ = r.lastFull(tk)
	return s != nil
}

// AwaitNews waits until the version is greater than that one, until ctx ends, or until no
// process can put any more.
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
