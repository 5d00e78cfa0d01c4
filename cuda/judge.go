package cuda

import (
	"fmt"
	"slices"
	"time"
)

// The pause between two polls of the clocks grows from soon to late, and to seldom if only lost
// waits are left.
const (
	soon   = 20 * time.Microsecond
	late   = 2 * time.Millisecond
	seldom = 50 * time.Millisecond
)

// open returns the waits of the stream that have not been judged. The caller must not hold e.
func (e *events) open() []*sent {
	e.Lock()
	defer e.Unlock()
	return slices.DeleteFunc(slices.Clone(e.awaited), func(s *sent) bool { return s.judged.Load() })
}

// judgeWaits waits until every pending wait of the stream is judged: the number has arrived, or
// it never will. It must not call the driver. The caller must hold neither d.events nor
// d.events.look.
func (d *Device) judgeWaits() {
	for pause := soon; ; pause = min(2*pause, late) {
		if all := d.events.open(); !d.judgeAll(all, pause == late) {
			return
		}
		time.Sleep(pause)
	}
}

// watchWaits judges the waits while there are any, so that each wait ends, even if driver calls are
// blocked behind it. At most one goroutine per device should run it. It continues as long as the
// stream may still reach the clock of a dead process; see [events.markAbandoned].
func (d *Device) watchWaits() {
	for pause := soon; ; pause *= 2 {
		if pause = min(pause, seldom); d.judgeAll(d.events.open(), pause >= late) {
			pause = min(pause, late)
		}
		if d.events.markAbandoned() {
			return
		}
		time.Sleep(pause)
	}
}

// markAbandoned sets the abandoned bit again in the clocks of lost waits. It returns true if no
// wait is left that is lost or not judged; then watchWaits must end. The device of a killed
// process may write a number after other processes have seen it end, because NVIDIA's kernel
// module may close its files later. Such a write clears the bit, and a stream that reached the
// clock afterwards would wait forever.
func (e *events) markAbandoned() (over bool) {
	e.Lock() // keeps the clocks from being released
	defer e.Unlock()
	over = true
	for _, s := range e.awaited {
		if s.lost.Load() {
			s.abandonClock()
		}
		over = over && s.judged.Load() && !s.lost.Load()
	}
	e.watched = !over
	return over
}

// judgeAll judges the given waits and reports whether any of them is still undecided. If isLate
// is set, it also makes the domain look for dead processes, because this process waits for the
// result.
func (d *Device) judgeAll(all []*sent, isLate bool) (left bool) {
	for _, s := range all {
		if d.judgeOne(s) {
			continue
		}
		if left = true; isLate {
			s.d.Reap() // others reap as well, but this process needs the result now
		}
	}
	return left
}

// recordLost records that queued work used memory that its sender's device had never written. The
// next call that waits for the device returns that error, once, because it is not known which
// memory contains derived results.
func (d *Device) recordLost(m *memory) {
	d.events.Lock()
	defer d.events.Unlock()
	d.events.lost = fmt.Errorf("%d bytes on %v: %w", m.size, d, ErrUnfinished)
}

// judgeOne reports whether it is known that the number of s has arrived or never will, and records
// that in s. The caller must hold neither d.events nor d.events.look. If s has been judged already,
// it must not read the clock, because the clock's block may have been released.
func (d *Device) judgeOne(s *sent) (judged bool) {
	d.events.look.Lock()
	defer d.events.look.Unlock()
	if s.judged.Load() {
		return true
	}
	// must precede the read of the clock, because the process's last write counts
	ended := s.d.Stale(s.life)
	came, told := s.readClock()
	if !came && !told && !ended {
		return false
	}
	if !came {
		if !told && s.abandonClock() {
			came = true
		}
	}
	if !came {
		s.lost.Store(true)
		s.of.fate.unfinished.Store(true)
		if s.of.fate.uses.Load() > s.uses { // used since it arrived
			d.recordLost(s.of)
		}
	}
	s.judged.Store(true)
	return true
}

// readClock reports whether the awaited number is in the sender's clock, and whether the clock
// is marked as abandoned. It does not block. It must not be called once s is judged, because the
// clock's block may have been released.
func (s *sent) readClock() (came, told bool) {
	now := s.number.Load()
	return now&^abandoned >= s.want, now&abandoned != 0
}

// abandonClock sets the abandoned bit in the clock, which ends every wait for it. It reports
// whether the number has arrived in the meantime: the device may finish the work of a killed
// process.
func (s *sent) abandonClock() (came bool) {
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
