package arena

import (
	"math/bits"
	"runtime"
	"time"
)

const (
	spinPolls = 24
	pollRest  = 256 // turns of an empty loop: 0.1 µs
	spinTime  = 20 * time.Microsecond
	probeTime = 3 * spinTime
)

// spin looks at the condition for a moment before the caller sleeps. After the first polls it goes
// on only while fewer than CPUs-1 participants spin, so that no spinner takes the CPU of the
// participant that it waits for. The number of CPUs is that of the domain's root: counting them
// costs more than joining. Where a spin was in vain lately, as it always is if both sides share a
// CPU, most spins are left out, with their first polls. The next try takes longer, since the other
// side may sleep by now as well.
func (d *Domain) spin(h *adaptiveBackoff, ready func() bool) bool {
	if crashing && controlled() || !h.due() {
		return false
	}
	found := poll(ready)
	if !found {
		if !d.startSpin() {
			return false
		}
		defer d.stopSpin()
		most := spinTime
		if h.vain.Load() != 0 {
			most = probeTime
		}
		found = pollFor(most, ready)
	}
	h.learn(found)
	return found
}

func poll(ready func() bool) bool {
	for range spinPolls {
		if ready() {
			return true
		}
		for range pollRest { // a poll takes the line from the one that writes it
		}
	}
	return false
}

func pollFor(most time.Duration, ready func() bool) bool {
	for end := time.Now().Add(most); time.Now().Before(end); {
		if poll(ready) {
			return true
		}
		runtime.Gosched()
	}
	return false
}

func (d *Domain) startSpin() bool {
	n := uint64(0)
	for i := range d.hdr.spinners {
		n += uint64(bits.OnesCount64(d.hdr.spinners[i].Load()))
	}
	w := &d.hdr.spinners[d.word]
	v := w.Load()
	return n+1 < d.hdr.cpus.Load() && v&d.bit == 0 && w.CAS(v, v|d.bit)
}

func (d *Domain) stopSpin() { d.hdr.spinners[d.word].AndNot(d.bit) }
