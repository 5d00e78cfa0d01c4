package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/shm"
)

// A slot is a batch from its planning to its delivery.
type slot struct {
	number  int   // of the batch in this iteration
	indices []int // its samples

	part     Part // of a Stream, instead of indices
	progress *progress
	before   *slot // that which has to be read before, nil once it was
	from     int   // samples of the part before this batch
	size     int   // samples wanted
	read     int   // samples read
	end      bool  // of the part

	bytes int    // as far as they are known, and else as many as those of the batch before
	frame *frame // nil until the layout is known, and where the worker makes the batch
	rows  bool   // the batch has a row for each of indices, also for those that are bad
	batch Batch  // the outcome
	open  int    // jobs under way
	begun bool
	sure  bool // the layout is that of its own first sample
	other bool // the layout has turned out to be another one
	ready bool
	bad   []SampleError // At is where in the batch
	err   error
}

// A window is one iteration over a Loader: the batches that are ready or being made, ahead of the consumer. Whoever has finished a job
// moves it on, so that no goroutine has to be woken for it.
type window struct {
	l     *Loader
	ctx   context.Context
	epoch int
	plan  plan
	mark  *mark
	crew  crew
	wake  chan struct{} // holds one token: something has become ready

	mu     sync.Mutex
	line   []*slot // planned and not delivered, in order
	bytes  int     // of all batches in line
	usual  int     // of the last batch that told
	layout layout  // of the last batch that told
	out    []*job  // to be submitted when mu is free
	left   bool    // the consumer has
	over   bool    // nothing is planned any more
	cost   time.Duration
	prints map[uint64]int // which part began like that
}

// take waits for the next batch; nil if there are none any more.
func (w *window) take() (*slot, error) {
	var alarm <-chan time.Time
	if d := w.l.opts.Timeout; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		alarm = t.C
	}
	for {
		if err := w.l.ended(w.ctx); err != nil {
			return nil, err
		}
		w.mu.Lock()
		w.advance()
		s := w.deliverable()
		idle := s == nil && len(w.line) == 0
		w.unlock()
		if s != nil || idle {
			return s, nil
		}
		if w.crew.step() {
			continue
		}
		select {
		case <-w.wake:
		case <-w.ctx.Done():
		case <-alarm:
			return nil, w.late()
		}
	}
}

// late is the error of a batch that has not come in time.
func (w *window) late() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Errorf("%w: batch %d was not ready after %v, %d jobs of it are under way", ErrTimeout, w.line[0].number, w.l.opts.Timeout, w.line[0].open)
}

// deliverable takes a batch out of the line that can be delivered, nil if there is none. mu is held.
func (w *window) deliverable() *slot {
	for i := 0; i < len(w.line); {
		s := w.line[i]
		switch {
		case s.ready && s.batch == nil && s.err == nil && len(s.bad) == 0: // the end of a part
			w.line = slices.Delete(w.line, i, i+1)
			w.advance()
			continue
		case s.ready:
			w.line = slices.Delete(w.line, i, i+1)
			w.bytes -= s.bytes
			return s
		case !w.l.opts.AsReady:
			return nil
		}
		i++
	}
	return nil
}

// unlock lets go of mu and submits what has to be.
func (w *window) unlock() {
	jobs := w.out
	w.out = nil
	w.mu.Unlock()
	for _, j := range jobs {
		w.crew.submit(j)
	}
}

// advance begins batches as far as the window goes. mu is held.
func (w *window) advance() {
	for _, s := range w.line {
		if !s.begun && !w.begin(s) {
			return
		}
	}
	for !w.left && !w.over && len(w.line) < w.l.ahead() && w.room() {
		s, ok := w.plan.next()
		if !ok {
			w.over = true
			return
		}
		w.line = append(w.line, s)
		if !w.begin(s) {
			return
		}
	}
}

// room reports whether another batch may be begun as far as bytes go. mu is held.
func (w *window) room() bool {
	switch {
	case len(w.line) == 0:
		return true
	case w.l.fills() && w.layout == nil:
		return false
	case w.usual == 0:
		return len(w.line) < w.l.opts.Workers
	}
	return w.bytes+w.usual <= w.l.opts.PrefetchBytes
}

// weigh notes how many bytes a batch has. mu is held.
func (w *window) weigh(s *slot, n int) {
	w.bytes += n - s.bytes
	s.bytes = n
}

// begin has a batch made, and reports whether others may be begun. mu is held.
func (w *window) begin(s *slot) bool {
	if s.progress != nil {
		if s.before != nil && !s.before.ready {
			return true // its turn comes
		}
		s.before, s.begun, s.from = nil, true, s.progress.read
		if s.progress.end {
			s.ready = true
			return true
		}
		w.weigh(s, w.usual)
		w.send(&job{s: s, n: s.size, kind: makeJob})
		return true
	}
	if !w.l.fills() {
		s.begun = true
		w.weigh(s, w.usual)
		w.send(&job{s: s, n: len(s.indices), kind: makeJob})
		return true
	}
	if w.layout == nil || s.other {
		s.begun, s.other, s.sure = true, false, true
		w.send(&job{s: s, n: 1, kind: probeJob})
		return w.layout != nil
	}
	err := w.allot(s, 0)
	if errors.Is(err, shm.ErrNoSpace) && w.line[0] != s {
		return false // there will be some when those before it are consumed
	}
	if s.begun = true; err != nil {
		s.err = err
		w.complete(s)
	}
	return true
}

// allot gives a batch its frame and has it filled from row from on. mu is held.
func (w *window) allot(s *slot, from int) error {
	f, err := w.l.frame(w.layout, len(s.indices), w.crew)
	if err != nil {
		return err
	}
	s.frame = f
	w.usual = f.size
	w.weigh(s, f.size)
	if n := len(s.indices) - from; n > 0 {
		parts := (n + w.chunk(n) - 1) / w.chunk(n)
		for k := range parts {
			at := from + k*n/parts
			w.send(&job{s: s, from: at, n: from + (k+1)*n/parts - at, kind: fillJob})
		}
	}
	return nil
}

// chunk is how many samples a worker gets at once, of n: so many that handing them out costs little of its time, and no more, so that
// others can take what is behind a slow one. mu is held.
func (w *window) chunk(n int) int {
	if w.l.opts.Workers == 0 || w.cost == 0 {
		return max(1, n)
	}
	unit := goroutineUnit
	if w.l.opts.Kind == Processes {
		unit = processUnit
	}
	return min(max(1, int(unit/w.cost)), n)
}

// How long what a worker gets at once should take it.
const (
	goroutineUnit = 50 * time.Microsecond
	processUnit   = 250 * time.Microsecond
)

func (w *window) send(j *job) {
	j.w = w
	j.s.open++
	w.out = append(w.out, j)
}

// finished is told what came of a job. err is why nobody has done it. Whoever finishes a batch transforms it, too.
func (w *window) finished(j *job, out outcome, err error) {
	w.l.meter.did(out, err)
	w.mu.Lock()
	defer w.unlock()
	s := j.s
	if w.left {
		closeAll(out.Batch)
	} else {
		w.note(j, out, err)
	}
	if s.open--; s.open > 0 {
		if j.kind == probeJob {
			w.advance() // the layout is known
		}
		return
	}
	if s.other && !w.left {
		w.restart(s)
		return
	}
	if s.whole() && w.l.opts.Transform != nil {
		s.open++
		w.unlock()
		err := w.l.transform(s)
		w.mu.Lock()
		s.open--
		s.err = cmp.Or(s.err, err)
	}
	if w.left {
		w.l.forget(s)
		return
	}
	w.complete(s)
	w.advance()
}

// whole makes the rows of a slot its batch, and reports whether there are any.
func (s *slot) whole() bool {
	if s.frame != nil {
		s.batch, s.rows = slices.Clone(s.frame.batch), true
	}
	return s.batch != nil
}

// note puts what came of a job into its slot. mu is held.
func (w *window) note(j *job, out outcome, err error) {
	s := j.s
	if err != nil {
		w.lost(j, err)
		return
	}
	each := out.Took / time.Duration(max(1, j.n))
	if w.cost += (each - w.cost) / 4; w.cost == 0 {
		w.cost = max(1, each)
	}
	for _, f := range out.Bad {
		if j.kind == fillJob && !s.sure && errors.Is(f.Err, ErrShape) {
			s.other = true
		}
		s.bad = append(s.bad, w.sampleError(s, j.from+f.At, out.Worker, f.Err))
	}
	switch {
	case s.progress != nil:
		s.read, s.end = out.Read, out.End
		s.progress.read += out.Read
		s.progress.end = out.End
		w.compare(s, out.Print)
		if w.l.opts.DropLast && out.Read < s.size {
			closeAll(out.Batch)
			return
		}
		w.made(s, out.Batch)
	case j.kind == makeJob:
		w.made(s, out.Batch)
	case j.kind == probeJob:
		w.probed(j, out)
	}
}

// made takes the batch that a worker has made. mu is held.
func (w *window) made(s *slot, b Batch) {
	s.batch = b
	if n := b.nbytes(); n > 0 {
		w.usual = n
		w.weigh(s, n)
	}
}

// probed makes the frame of a batch like its first sample. mu is held.
func (w *window) probed(j *job, out outcome) {
	s := j.s
	defer closeAll(out.Batch)
	if out.Batch == nil { // it was bad
		if w.l.opts.Skip != nil && j.from+1 < len(s.indices) {
			w.send(&job{s: s, from: j.from + 1, n: 1, kind: probeJob})
		}
		return
	}
	w.layout = layoutOf(out.Batch, 1)
	if err := w.allot(s, j.from+1); err != nil {
		s.err = err
		return
	}
	row := s.frame.batch.rows(j.from, 1)
	for k, t := range out.Batch {
		row[k].CopyFrom(t)
	}
	closeAll(row)
}

// restart makes a batch anew whose samples are of another layout than those of the batch before. mu is held.
func (w *window) restart(s *slot) {
	w.weigh(s, 0)
	w.l.recycle(s.frame)
	s.frame, s.bad = nil, nil
	w.begin(s)
}

// maxDeaths is how many workers may die of one sample.
const maxDeaths = 3

// lost has a job done again whose worker has died, sample by sample, so that the one that kills workers is found. mu is held.
func (w *window) lost(j *job, err error) {
	if !isDeath(err) {
		j.s.err = err
		return
	}
	if j.deads++; j.n > 1 && j.kind == fillJob {
		for i := range j.n {
			w.send(&job{s: j.s, from: j.from + i, n: 1, kind: fillJob, deads: j.deads})
		}
		return
	}
	if j.deads < maxDeaths {
		w.send(j)
		return
	}
	if j.n > 1 || j.s.progress != nil {
		j.s.err = fmt.Errorf("data: %d workers have died of one batch: %w", maxDeaths, err)
		return
	}
	var dead *shoal.ProcessError
	errors.As(err, &dead)
	j.s.bad = append(j.s.bad, w.sampleError(j.s, j.from, dead.Rank, err))
}

// isDeath reports whether err says that a worker has died which another one replaces.
func isDeath(err error) bool {
	var dead *shoal.ProcessError
	return errors.As(err, &dead) && !errors.Is(err, pool.ErrBroken)
}

func (w *window) sampleError(s *slot, at, worker int, err error) SampleError {
	e := SampleError{Index: s.from + at, Epoch: w.epoch, Worker: worker, Part: s.part, At: at, Err: err}
	if s.progress == nil {
		e.Index = s.indices[at]
	}
	if w.l.opts.Workers == 0 {
		e.Worker = -1
	}
	return e
}

// compare finds a Stream that does not heed its Part: two parts of it begin with the same samples. mu is held.
func (w *window) compare(s *slot, print uint64) {
	if print == 0 || s.from > 0 {
		return
	}
	if other, ok := w.prints[print]; ok && other != s.part.Index {
		s.err = fmt.Errorf("%w: parts %d and %d of %d begin with the same samples", ErrPart, other, s.part.Index, s.part.Count)
	}
	w.prints[print] = s.part.Index
}

// complete makes a batch deliverable. mu is held.
func (w *window) complete(s *slot) {
	s.ready = true
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// ready returns how many batches could be delivered.
func (w *window) ready() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.line {
		if s.ready {
			n++
		}
	}
	return n
}

// leave is the end of the consumer. What is under way comes to an end, for nobody.
func (w *window) leave() {
	w.mu.Lock()
	defer w.unlock()
	w.left = true
	for _, s := range w.line {
		if s.open == 0 {
			w.l.forget(s)
		}
	}
	w.line = nil
}
