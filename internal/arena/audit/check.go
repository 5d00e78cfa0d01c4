package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Report is the result of [Check].
type Report struct {
	Counts
	Token      [16]byte      `json:"-"` // of the domain
	Passes     int           `json:"passes"`
	Took       time.Duration `json:"took_ns"`
	Violations []Violation   `json:"violations"`
	More       int           `json:"more"` // findings of the first pass beyond its limit, not followed
	// Undecided is the number of findings that an operation may explain, because a process was
	// stopped, or was dead and not reaped, during the whole check.
	Undecided int `json:"undecided"`
}

// The passes of a check. A finding counts if as many passes in a row have it, with the same words,
// and if none of its words was seen with another value between the passes. A finding that an
// operation may explain needs more passes, and all of them while no process was stopped or dead.
const (
	checkPause  = 300 * time.Millisecond // between two passes
	checkPoll   = 500 * time.Microsecond // between two looks at the words of a finding
	leastPasses = 5
	brieflySeen = 9
	mostPasses  = 30
)

// A checker audits a domain in several passes.
type checker struct {
	src  Source
	left map[string]*suspect // by the text of the finding
	out  Report
}

// A suspect is a finding of all passes so far.
type suspect struct {
	finding
	passes int
	agreed int // passes that count for it
	order  int
}

// Check audits a domain while its processes work, in several passes; see Note [Audit]. ctx bounds
// its time, and the error wraps the cause of its end.
func Check(ctx context.Context, src Source) (Report, error) {
	begun := time.Now()
	c := &checker{src: src, out: Report{Token: src.Memory().Token(), Violations: []Violation{}}}
	for c.out.Passes < mostPasses {
		if c.out.Passes > 0 {
			if err := c.watchWords(ctx); err != nil {
				return Report{}, err
			}
		}
		if err := c.makePass(ctx); err != nil {
			return Report{}, err
		}
		if c.isDecided() {
			break
		}
	}
	c.conclude()
	c.out.Took = time.Since(begun)
	return c.out, nil
}

// makePass makes one pass, and drops the findings that it does not have.
func (c *checker) makePass(ctx context.Context) error {
	quiet := c.isQuiet()
	a := newAuditor(ctx, c.src, false, nil)
	if err := a.runPass(); err != nil {
		return fmt.Errorf("not finished in pass %d, after %d blocks and %d slots: %w", c.out.Passes+1, a.counts.Blocks,
			a.counts.Slots, err)
	}
	quiet = quiet && c.isQuiet()
	c.out.Counts = a.counts
	c.out.Passes++
	next := make(map[string]*suspect)
	for i, f := range a.found {
		key := strings.Join([]string{f.part, f.found, f.rule.text}, "\n")
		s := c.left[key]
		if s == nil {
			if c.out.Passes > 1 {
				continue
			}
			s = &suspect{finding: f, order: i}
		}
		s.passes++
		if quiet || !f.rule.brief {
			s.agreed++
		}
		next[key] = s
	}
	c.left = next
	if c.out.Passes == 1 {
		c.out.More = a.more
	}
	return nil
}

// isQuiet reports whether every participant is LIVE, has its proof of life, and is not stopped, and
// no participant reaps. Otherwise an operation may stay unfinished for any time.
func (c *checker) isQuiet() bool {
	m := c.src.Memory()
	if m.Header.Recovery.Load() != 0 {
		return false
	}
	for s := range m.Participants {
		w := m.Participants[s].State.Load()
		if w.HasState(word.ParticipantFree) {
			continue
		}
		alive, err := c.src.IsAlive(s)
		if !w.HasState(word.ParticipantLive) || err != nil || !alive || sys.Stopped(m.PIDOf(s)) {
			return false
		}
	}
	return true
}

// watchWords waits for the next pass, and meanwhile drops each finding if one of its words has
// changed. It returns at once if no finding is left. The error wraps the cause of ctx if ctx
// ends.
func (c *checker) watchWords(ctx context.Context) error {
	tick := time.NewTicker(checkPoll)
	defer tick.Stop()
	for end := time.Now().Add(checkPause); len(c.left) > 0 && time.Now().Before(end); {
		for key, s := range c.left {
			for _, w := range s.words {
				if !w.isUnchanged() {
					delete(c.left, key)
					break
				}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not finished after pass %d: %w", c.out.Passes, context.Cause(ctx))
		}
	}
	return nil
}

// isDecided reports whether further passes would not change the report.
func (c *checker) isDecided() bool {
	for _, s := range c.left {
		if s.agreed < s.passesNeeded() {
			return false
		}
	}
	return true
}

// passesNeeded returns the number of passes that must agree on the finding.
func (s *suspect) passesNeeded() int {
	if s.rule.brief {
		return brieflySeen
	}
	return leastPasses
}

// conclude fills the report with the findings that stayed, in the order of the first pass.
func (c *checker) conclude() {
	var all []*suspect
	for _, s := range c.left {
		if s.agreed < s.passesNeeded() {
			c.out.Undecided++
			continue
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y *suspect) int { return x.order - y.order })
	for _, s := range all {
		c.out.Violations = append(c.out.Violations, s.violation())
	}
	if len(all) == 0 {
		c.out.More = 0
	}
}

// A Pass is the result of one pass over a domain. Operations that are in progress may explain its
// findings, those in Brief even if all processes work correctly.
type Pass struct {
	Counts
	Firm, Brief []Violation
	More        int // findings beyond the limit
}

// RunPass makes one pass over a domain in which operations may be in progress. It returns the
// cause of ctx if ctx ends before; the Pass then has the findings so far.
func RunPass(ctx context.Context, src Source) (Pass, error) {
	a := newAuditor(ctx, src, false, nil)
	err := a.runPass()
	p := Pass{Counts: a.counts, More: a.more}
	for _, f := range a.found {
		if f.rule.brief {
			p.Brief = append(p.Brief, f.violation())
		} else {
			p.Firm = append(p.Firm, f.violation())
		}
	}
	return p, err
}

// Inspect makes one pass over a domain at rest: no operation may be in progress in any process,
// and every death must have been reaped. So each violation is a fault. self describes the
// participant that calls it, and may be nil.
func Inspect(src Source, self *Self) []Violation {
	a := newAuditor(context.Background(), src, true, self)
	a.runPass()
	return a.violations()
}

// InspectBitmaps checks only that each bit of a participant belongs to one that is alive.
// Operations may be in progress. self describes the participant that calls it, and may be nil.
func InspectBitmaps(src Source, self *Self) []Violation {
	a := newAuditor(context.Background(), src, true, self)
	a.readSeats()
	a.checkHeaderBits()
	a.eachBlock(a.checkWaiters)
	return a.violations()
}

// violations returns the findings so far.
func (a *auditor) violations() (all []Violation) {
	for _, f := range a.found {
		all = append(all, f.violation())
	}
	return all
}
