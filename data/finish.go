package data

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
)

// finished is told what came of a job. err is why nobody has done it.
func (w *window) finished(j *job, out outcome, err error) {
	w.l.meter.did(j.n, out, err)
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
	if s.frame != nil {
		s.batch, s.rows = slices.Clone(s.frame.all()), true
	}
	if w.left {
		w.l.forget(s)
		return
	}
	w.complete(s)
	w.advance()
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
		w.made(s, out)
	case j.kind == makeJob:
		w.made(s, out)
	case j.kind == probeJob:
		w.probed(j, out)
	}
}

// made takes the batch that a worker has made. mu is held.
func (w *window) made(s *slot, out outcome) {
	s.batch, s.spec = out.Batch, out.Spec
	if n := s.batch.nbytes(); n > 0 {
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
	if out.Spec != "" && !fixed(out.Like) {
		w.loose, s.bad = true, nil
		w.send(&job{s: s, n: len(s.indices), kind: makeJob})
		return
	}
	w.layout, w.spec, w.like = layoutOf(out.Batch, 1), out.Spec, out.Like
	if err := w.allot(s, j.from+1); err != nil {
		s.err = err
		return
	}
	row := s.frame.all().rows(j.from, 1)
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
	if j.kind == probeJob {
		w.probed(j, outcome{}) // the next one may tell
	}
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
	s.done.Store(true)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
