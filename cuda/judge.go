package cuda

import (
	"fmt"
	"slices"
	"time"
)

// The pause between two looks grows from soon to late, and to seldom where only the lost are left.
const (
	soon   = 20 * time.Microsecond
	late   = 2 * time.Millisecond
	seldom = 50 * time.Millisecond
)

// open returns what the stream waits for and nobody has judged.
func (e *events) open() []*sent {
	e.Lock()
	defer e.Unlock()
	return slices.DeleteFunc(slices.Clone(e.awaited), func(s *sent) bool { return s.judged.Load() })
}

// judge waits until it is known of all that the stream waits for whether it has come or never will.
// It makes no call of the driver.
func (d *Device) judge() {
	for pause := soon; ; pause = min(2*pause, late) {
		if all := d.events.open(); !d.judgeAll(all, pause == late) {
			return
		}
		time.Sleep(pause)
	}
}

// watch judges for as long as the stream waits for something: so each wait ends, whichever call of
// the driver stands behind it. A device has one goroutine that watches. The goroutine goes on as
// long as the stream may have to come to the clock of a dead process; see events.mark.
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

// mark marks the clocks of the lost again, and reports whether there is nothing to watch any more:
// then nobody does. The device of a killed process may write a number after others have seen the
// process end, since the kernel module of NVIDIA may close its files later. The number takes the
// mark away, and a stream that came to the clock after that would wait for ever.
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

// judgeAll reports whether one of them is not judged yet. Where that takes long it has the domain
// look which processes have died, since this one waits for the answer.
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

// lose notes that work has used memory that its sender's device had not written. The next wait for
// the device returns that, once: nobody knows which memory holds what came of it.
func (d *Device) lose(m *memory) {
	d.events.Lock()
	defer d.events.Unlock()
	d.events.lost = fmt.Errorf("%d bytes on %v: %w", m.size, d, ErrUnfinished)
}

// judgeOne reports whether it is known that the number has come, or never will. A goroutine that
// finds s judged does not look at the clock, whose block may have been given back.
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
