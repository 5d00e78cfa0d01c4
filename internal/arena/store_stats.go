package arena

import (
	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Stats reads the domain's counters. It takes no lock, and other participants continue meanwhile,
// so the figures belong to slightly different moments.
func (d *Domain) Stats() Stats {
	s := d.headerStats()
	for i := uint64(1); i < d.blockCount(); i++ {
		b := &d.mem.Blocks[i]
		if w := b.State.Load(); !isContents(b, w) {
			tallyBlock(&s, w, int64(b.Committed.Load()))
		}
	}
	return s
}

// tallyBlock adds a block with n committed bytes.
func tallyBlock(s *Stats, w word.State, n int64) {
	if !w.IsAllocated() {
		s.Idle++
		s.IdleBytes += n
		return
	}
	s.Blocks++
	s.Bytes += n
	s.InTransit += int(w.TransitCount())
}

// headerStats returns the counters that do not depend on blocks.
func (d *Domain) headerStats() Stats {
	s := Stats{
		Limit:     int64(d.mem.Header.Limit.Load() * layout.PageSize),
		Committed: int64(d.mem.Header.Budget.Load() >> word.BudgetPageShift * layout.PageSize),
		Reaped:    int(d.mem.Header.Reaped.Load()),
		Dropped:   int(d.mem.Header.Dropped.Load()),
		Restarts:  int(d.mem.Header.Restarts.Load()),
		Retries:   int(d.mem.Header.Retries.Load()),
	}
	lanes := d.mem.Header.Lanes.Load()
	for i := range word.MaxParticipants {
		if d.mem.Participants[i].State.Load().HasState(word.ParticipantLive) {
			s.Participants++
		}
		if uint64(i) >= lanes {
			continue
		}
		for j := range layout.LanesPerSeat {
			rec := &d.mem.Lanes[i*layout.LanesPerSeat+j]
			s.Allocs += int64(rec.Allocs.Load())
			s.Copied += int64(rec.Copied.Load())
		}
	}
	return s
}

// CountCopied adds n bytes to the domain's count of copied bytes. Packages should call it when they
// copy into or out of blocks.
func (d *Domain) CountCopied(n int) {
	if l, err := d.acquireLane(); err == nil {
		l.rec.Copied.Set(l.rec.Copied.Load() + uint64(n))
		l.unlock()
	}
}

// CountRestart counts a process that a group has restarted.
func (d *Domain) CountRestart() { d.countInHeader(&d.mem.Header.Restarts) }

// CountRetry counts a task that a pool has run again.
func (d *Domain) CountRetry() { d.countInHeader(&d.mem.Header.Retries) }

// countInHeader adds 1 to a counter, unless d is closed.
func (d *Domain) countInHeader(w *word.Word) {
	if l, err := d.acquireLane(); err == nil {
		w.Add(1)
		l.unlock()
	}
}
