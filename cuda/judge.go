package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Waiting grows from the first to the last of these.
const (
	soon = 20 * time.Microsecond
	late = 2 * time.Millisecond
)

// judge waits until all that the stream waits for has come, or will never.
func (d *Device) judge(r *ready) error {
	d.events.Lock()
	all := slices.DeleteFunc(slices.Clone(d.events.awaited), func(s *sent) bool { return s.judged.Load() })
	d.events.Unlock()
	for _, s := range all {
		for pause := soon; ; pause = min(2*pause, late) {
			judged, err := d.judgeOne(r, s)
			if err != nil {
				return err
			}
			if judged {
				break
			}
			if pause == late {
				s.clock.d.Reap() // as others do; here somebody waits for it
			}
			time.Sleep(pause)
		}
	}
	return nil
}

// lose notes that work has used what is not there. It is told once to who waits for the device:
// nobody knows which memory holds what became of it.
func (d *Device) lose(m *memory) {
	d.events.Lock()
	defer d.events.Unlock()
	d.events.lost = fmt.Errorf("%d bytes on %v: %w", m.size, d, ErrUnfinished)
}

// judgeOne reports whether it is known that the number has come, or will never. A goroutine that
// finds that another one knows does not look at the clock, since that may have been given back, and
// unmapped.
func (d *Device) judgeOne(r *ready, s *sent) (judged bool, err error) {
	d.events.look.Lock()
	defer d.events.look.Unlock()
	if s.judged.Load() {
		return true, nil
	}
	ended := s.clock.d.Stale(s.life) // before the clock is read: what it wrote last counts
	now, err := d.read(r, s.clock)
	if err != nil {
		return false, err
	}
	came, told := now&^abandoned >= s.number, now&abandoned != 0
	if !came && !told && !ended {
		return false, nil
	}
	if !came {
		if !told {
			if err := d.abandon(r, s.clock, now); err != nil {
				return false, err
			}
		}
		s.of.fate.unfinished.Store(true)
		if s.of.fate.uses.Load() > s.uses { // since it came
			d.lose(s.of)
		}
	}
	s.judged.Store(true)
	return true, nil
}

// read looks at a clock beside the stream, which may be waiting for it.
func (d *Device) read(r *ready, c *memory) (uint32, error) {
	b := make([]byte, 4)
	err := d.within(r, func() error {
		err := d.driver.MemcpyDtoHAsync(b, c.at(0, 4), r.side)
		return errors.Join(err, d.driver.StreamSynchronize(r.side))
	})
	return binary.NativeEndian.Uint32(b), err
}

func (d *Device) abandon(r *ready, c *memory, now uint32) error {
	return d.within(r, func() error {
		err := d.driver.StreamWriteValue32(r.side, c.at(0, 4), now|abandoned)
		return errors.Join(err, d.driver.StreamSynchronize(r.side))
	})
}
