package arena

import "github.com/shoal-mp/shoal/internal/arena/word"

// Stats reads the domain's counters. It takes no lock, and other participants continue meanwhile,
// so the figures belong to slightly different moments.
func (d *Domain) Stats() Stats {
	s := d.headerStats()
	for i := uint64(1); i < d.blockCount(); i++ {
		b := &d.blocks[i]
		if w := b.w.Load(); !isContents(b, w) {
			tallyBlock(&s, w, int64(b.committed.Load()))
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
		Limit:     int64(d.hdr.limit.Load() * pageSize),
		Committed: int64(d.hdr.budget.Load() >> word.BudgetPageShift * pageSize),
		Reaped:    int(d.hdr.reaped.Load()),
		Dropped:   int(d.hdr.dropped.Load()),
		Restarts:  int(d.hdr.restarts.Load()),
		Retries:   int(d.hdr.retries.Load()),
	}
	lanes := d.hdr.lanes.Load()
	for i := range word.MaxParticipants {
		if d.parts[i].state.Load().HasState(word.ParticipantLive) {
			s.Participants++
		}
		if uint64(i) >= lanes {
			continue
		}
		for j := range lanesPerSeat {
			rec := &d.recs[i*lanesPerSeat+j]
			s.Allocs += int64(rec.allocs.Load())
			s.Copied += int64(rec.copied.Load())
		}
	}
	return s
}

// CountCopied adds n bytes to the domain's count of copied bytes. Packages should call it when they
// copy into or out of blocks.
func (d *Domain) CountCopied(n int) {
	if l, err := d.acquireLane(); err == nil {
		l.rec.copied.Set(l.rec.copied.Load() + uint64(n))
		l.unlock()
	}
}

// CountRestart counts a process that a group has restarted.
func (d *Domain) CountRestart() { d.countInHeader(&d.hdr.restarts) }

// CountRetry counts a task that a pool has run again.
func (d *Domain) CountRetry() { d.countInHeader(&d.hdr.retries) }

// countInHeader adds 1 to a counter, unless d is closed.
func (d *Domain) countInHeader(w *word.Word) {
	if l, err := d.acquireLane(); err == nil {
		w.Add(1)
		l.unlock()
	}
}
