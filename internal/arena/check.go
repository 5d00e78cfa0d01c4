package arena

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// ErrNoDomain means that a process has no domain of this version open.
var ErrNoDomain = errors.New("shm: the process has no shared memory of Shoal")

// A CheckReport is the result of [Check] for one domain.
type CheckReport struct {
	CheckCounts
	Token      [16]byte      `json:"-"` // of the domain
	Passes     int           `json:"passes"`
	Took       time.Duration `json:"took_ns"`
	Violations []Violation   `json:"violations"`
	More       int           `json:"more"` // findings of the first pass beyond its limit, not followed
	// Undecided is the number of findings that an operation may explain, because a process was
	// stopped, or was dead and not reaped, during the whole check.
	Undecided int `json:"undecided"`
}

// Check audits the domains that process pid has open, while their processes work; see Note [Audit].
// It maps their memory for reading only. ctx bounds its time; it should have a deadline. The error
// wraps [os.ErrProcessDone] if there is no such process, [ErrUser] if the process belongs to
// another user, [ErrNoDomain] if it has no domain, and [ErrVersion] if its domain has another
// layout.
func Check(ctx context.Context, pid int) ([]CheckReport, error) {
	all, err := examine(pid)
	if err != nil {
		return nil, fmt.Errorf("check process %d: %w", pid, err)
	}
	var reports []CheckReport
	for _, d := range all {
		if err == nil {
			var r CheckReport
			r, err = checkDomain(ctx, d)
			reports = append(reports, r)
		}
	}
	for _, d := range all {
		err = errors.Join(err, d.store.close())
	}
	if err != nil {
		return nil, fmt.Errorf("check process %d: %w", pid, err)
	}
	return reports, nil
}

// examine maps the domains that process pid has open. The caller must close their stores.
func examine(pid int) (all []*Domain, err error) {
	files, err := sys.MemoryFilesOf(pid, fileNames)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return nil, errors.Join(os.ErrProcessDone, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, errors.Join(ErrUser, err)
	case err != nil:
		return nil, err
	}
	byName := make(map[string]*os.File)
	for _, f := range files {
		byName[f.Name()] = f
	}
	for _, f := range files {
		if f.Name() != controlName {
			continue
		}
		name, numbered := dataName(f)
		if data := byName[name]; numbered == nil && data != nil {
			d, fails := examineFiles(f, data)
			if fails == nil {
				all = append(all, d)
				delete(byName, name)
				continue
			}
			err = errors.Join(err, fails)
		}
	}
	for _, f := range files {
		if !inUse(all, f) {
			f.Close()
		}
	}
	if len(all) == 0 {
		return nil, errors.Join(ErrNoDomain, err)
	}
	return all, nil
}

// inUse reports whether f is a file of one of the domains.
func inUse(all []*Domain, f *os.File) bool {
	for _, d := range all {
		if s := d.store.(*examined); s.ctlFile == f || s.dataFile == f {
			return true
		}
	}
	return false
}

// examineFiles maps a domain for reading only. It owns the files if it succeeds.
func examineFiles(ctl, data *os.File) (_ *Domain, err error) {
	s := &examined{ctlFile: ctl, dataFile: data}
	info, err := data.Stat()
	if err != nil {
		return nil, err
	}
	if c, err := ctl.Stat(); err != nil || c.Size() != controlSize {
		return nil, errors.Join(controlSizeError(ctl), err)
	}
	if !sys.Sealed(ctl) || !sys.Sealed(data) || info.Size() == 0 {
		return nil, fmt.Errorf("%w: a file that can shrink", ErrCorrupt)
	}
	defer func() {
		if err != nil {
			s.unmap()
		}
	}()
	if s.ctl, err = sys.MapReadOnly(ctl, controlSize); err != nil {
		return nil, err
	}
	if s.mem, err = sys.MapReadOnly(data, int(info.Size())); err != nil {
		return nil, err
	}
	d := overlayStore(s)
	d.hurry()
	return d, d.checkLayout()
}

// examined is the store of a domain that this process has mapped for reading only, and has not
// joined.
type examined struct {
	ctlFile, dataFile *os.File
	ctl, mem          []byte
}

func (s *examined) control() []byte { return s.ctl }
func (s *examined) data() []byte    { return s.mem }

func (s *examined) isAlive(seat int) (bool, error) { return sys.ByteLocked(s.ctlFile, int64(seat)) }

// countHeaders returns the number of block headers that are backed by pages.
func (s *examined) countHeaders() uint64 { return uint64(sys.Backed(s.ctlFile, offBlocks)) / blockSize }

// countSeats returns the number of seats with lane records that are backed by pages.
func (s *examined) countSeats() uint64 { return uint64(sys.Backed(s.ctlFile, offLanes)) / laneBytes }

// backedBytes returns the number of bytes of the data segment that are backed, from off on.
func (s *examined) backedBytes(off uint64) uint64 { return uint64(sys.Backed(s.dataFile, int64(off))) }

func (s *examined) unmap() {
	if s.ctl != nil {
		sys.Unmap(s.ctl)
	}
	if s.mem != nil {
		sys.Unmap(s.mem)
	}
}

func (s *examined) close() error {
	s.unmap()
	return errors.Join(s.ctlFile.Close(), s.dataFile.Close())
}

var errExamined = fmt.Errorf("change a domain that was opened for reading: %w", errors.ErrUnsupported)

func (s *examined) commitControl(uint64, uint64) error         { return errExamined }
func (s *examined) commitData(uint64, uint64) error            { return errExamined }
func (s *examined) punchData(uint64, uint64) error             { return errExamined }
func (s *examined) headroom() int64                            { return 0 }
func (s *examined) lockSeat(int) (bool, error)                 { return false, errExamined }
func (s *examined) unlockSeat(int) error                       { return errExamined }
func (s *examined) awaitDeath(context.Context, int, int) error { return errExamined }
func (s *examined) openBell() (b bell, name uint64, err error) { return nil, 0, errExamined }
func (s *examined) wakeBell(int, uint64, topic) bool           { return false }

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
	d    *Domain
	left map[string]*suspect // by the text of the finding
	out  CheckReport
}

// A suspect is a finding of all passes so far.
type suspect struct {
	auditFinding
	passes int
	agreed int // passes that count for it
	order  int
}

// checkDomain audits one domain.
func checkDomain(ctx context.Context, d *Domain) (CheckReport, error) {
	begun := time.Now()
	c := &checker{d: d, out: CheckReport{Token: d.Token(), Violations: []Violation{}}}
	for c.out.Passes < mostPasses {
		if c.out.Passes > 0 {
			if err := c.watchWords(ctx); err != nil {
				return CheckReport{}, err
			}
		}
		if err := c.makePass(ctx); err != nil {
			return CheckReport{}, err
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
	a := newAuditor(ctx, c.d, false)
	if err := a.runPass(); err != nil {
		return fmt.Errorf("not finished in pass %d, after %d blocks and %d slots: %w", c.out.Passes+1, a.counts.Blocks,
			a.counts.Slots, err)
	}
	quiet = quiet && c.isQuiet()
	c.out.CheckCounts = a.counts
	c.out.Passes++
	next := make(map[string]*suspect)
	for i, f := range a.found {
		key := strings.Join([]string{f.part, f.found, f.rule.text}, "\n")
		s := c.left[key]
		if s == nil {
			if c.out.Passes > 1 {
				continue
			}
			s = &suspect{auditFinding: f, order: i}
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
	if c.d.hdr.recovery.Load() != 0 {
		return false
	}
	for s := range c.d.parts {
		p := &c.d.parts[s]
		w := p.state.Load()
		if w.HasState(word.ParticipantFree) {
			continue
		}
		alive, err := c.d.store.isAlive(s)
		if !w.HasState(word.ParticipantLive) || err != nil || !alive || sys.Stopped(c.d.pidOf(s)) {
			return false
		}
	}
	return true
}

// watchWords waits for the next pass, and meanwhile drops each finding of which a word has changed.
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
		if s.agreed < s.needed() {
			return false
		}
	}
	return true
}

// needed returns the number of passes that must agree on the finding.
func (s *suspect) needed() int {
	if s.rule.brief {
		return brieflySeen
	}
	return leastPasses
}

// conclude fills the report with the findings that stayed, in the order of the first pass.
func (c *checker) conclude() {
	var all []*suspect
	for _, s := range c.left {
		if s.agreed < s.needed() {
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
