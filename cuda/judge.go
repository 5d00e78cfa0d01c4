package cuda

import (
	"fmt"
	"slices"
	"time"
)

// Waiting grows from the first to the second of these, and to the third for what was lost.
const (
	soon   = 20 * time.Microsecond
	late   = 2 * time.Millisecond
	seldom = 50 * time.Millisecond
)

// open returns what the stream waits for, as far as nobody has judged it.
func (e *events) open() []*sent {
	e.Lock()
	defer e.Unlock()
	return slices.DeleteFunc(slices.Clone(e.awaited), func(s *sent) bool { return s.judged.Load() })
}

// judge waits until all that the stream waits for has come, or will never. It makes no call of the
// driver.
func (d *Device) judge() {
	for pause := soon; ; pause = min(2*pause, late) {
		if all := d.events.open(); !d.judgeAll(all, pause == late) {
			return
		}
		time.Sleep(pause)
	}
}

// watch judges for as long as the stream waits for something: so each wait ends, whichever call of
// the driver stands behind it. One goroutine of a device does. It goes on as long as the stream may
// have to come to the clock of a dead process; see events.mark.
func (d *Device) watch() {
	for pause := soon; ; pause *= 2 {
		if pause = min(pause, seldom); d.judgeAll(d.events.open(), pause >= late) {
			pause = min(pause, late)
		}
		if d.events.mark() {
			return
		}
		time.Sleep(pause)
	}
}

// mark marks again the clocks of what was lost, and reports whether there is nothing to watch any
// more: then nobody does. A process that was killed has ended before all that its device had been
// told has: the kernel module of NVIDIA may close its files later. A number that the device writes
// then takes the mark away, and a stream that comes to the clock after that would wait for ever.
func (e *events) mark() (over bool) {
	e.Lock() // so that no clock is given back meanwhile
	defer e.Unlock()
	over = true
	for _, s := range e.awaited {
		if s.lost.Load() {
			s.abandon()
		}
		over = over && s.judged.Load() && !s.lost.Load()
	}
	e.watched = !over
	return over
}

// judgeAll reports whether one of them has not been judged. For one that is late somebody has to
// look which processes have died.
func (d *Device) judgeAll(all []*sent, isLate bool) (left bool) {
	for _, s := range all {
		if d.judgeOne(s) {
			continue
		}
		if left = true; isLate {
			s.d.Reap() // as others do; here somebody waits for it
		}
	}
	return left
}

// lose notes that work has used what is not there. It is told once to who waits for the device:
// nobody knows which memory holds what became of it.
func (d *Device) lose(m *memory) {
	d.events.Lock()
	defer d.events.Unlock()
	d.events.lost = fmt.Errorf("%d bytes on %v: %w", m.size, d, ErrUnfinished)
}

// judgeOne reports whether it is known that the number has come, or will never. A goroutine that
// finds that another one knows does not look at the clock, whose block may have been given back.
func (d *Device) judgeOne(s *sent) (judged bool) {
	d.events.look.Lock()
	defer d.events.look.Unlock()
	if s.judged.Load() {
		return true
	}
	ended := s.d.Stale(s.life) // before the clock is read: what it wrote last counts
	came, told := s.look()
	if !came && !told && !ended {
		return false
	}
	if !came {
		if !told && s.abandon() {
			came = true
		}
	}
	if !came {
		s.lost.Store(true)
		s.of.fate.unfinished.Store(true)
		if s.of.fate.uses.Load() > s.uses { // since it came
			d.lose(s.of)
		}
	}
	s.judged.Store(true)
	return true
}

// look reports whether the number has come, and whether somebody has found that it will not.
func (s *sent) look() (came, told bool) {
	now := s.number.Load()
	return now&^abandoned >= s.want, now&abandoned != 0
}

// abandon ends every wait for the clock. It reports whether the number has come meanwhile: the work
// of a process that was killed may be done after all.
func (s *sent) abandon() (came bool) {
	for {
		now := s.number.Load()
		switch {
		case now&^abandoned >= s.want:
			return true
		case now&abandoned != 0:
			return false
		}
		if s.number.CompareAndSwap(now, now|abandoned) {
			return false
		}
	}
}
