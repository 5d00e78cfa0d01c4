package data

import (
	"errors"
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
)

// maxDeaths is the default maximum number of workers killed by one sample. See
// [Options.maxWorkerDeaths].
const maxDeaths = 3

// maxWorkerDeaths returns the number of workers that may die while loading one sample before it
// fails.
func (o Options) maxWorkerDeaths() int { return max(maxDeaths, 1+o.Retries) }

// retryLost handles a request that was not completed. If its worker died, lost requests the samples
// again, one by one, so that the sample that kills workers is identified. A sample that has killed
// maxWorkerDeaths workers fails, or its batch if that was a single request. Any other error fails
// the batch. The caller must hold p.mu.
func (p *prefetcher) retryLost(f *fetch, err error) {
	if p.l.elsewhere != nil || !isDeath(err) {
		f.b.err = err
		return
	}
	if f.deads++; f.n > 1 && f.kind == fetchRows {
		for i := range f.n {
			p.send(&fetch{b: f.b, from: f.from + i, n: 1, kind: fetchRows, deads: f.deads})
		}
		return
	}
	if f.deads < p.l.opts.maxWorkerDeaths() {
		p.send(f)
		return
	}
	if f.n > 1 || f.b.progress != nil {
		f.b.err = fmt.Errorf("data: %d workers died while loading one batch: %w", f.deads, err)
		return
	}
	var dead *shoal.ProcessError
	errors.As(err, &dead)
	f.b.bad = append(f.b.bad, p.sampleError(f.b, f.from, dead.Rank, err))
	if f.kind == fetchSample {
		p.recordProbe(f, fetchResult{}) // probe the next sample
	}
}

// isDeath reports whether err is the death of a worker that will be replaced.
func isDeath(err error) bool {
	var dead *shoal.ProcessError
	return errors.As(err, &dead) && !errors.Is(err, pool.ErrBroken)
}

func (p *prefetcher) sampleError(b *batchState, at, worker int, err error) SampleError {
	e := SampleError{Index: b.from + at, Epoch: p.epoch, Worker: worker, Part: b.part, At: at, Err: err}
	if b.progress == nil {
		e.Index = b.indices[at]
	}
	if p.l.opts.Workers == 0 {
		e.Worker = -1
	}
	return e
}

// compare fails a batch with [ErrPart] if another part of the Stream began with the same samples.
// The caller must hold p.mu.
func (p *prefetcher) compare(b *batchState, print uint64) {
	if print == 0 || b.from > 0 {
		return
	}
	if other, ok := p.prints.recordPrint(print, b.part.Index); ok && other != b.part.Index {
		b.err = fmt.Errorf("%w: parts %d and %d of %d start with the same samples",
			ErrPart, other, b.part.Index, b.part.Count)
	}
}

// prints maps the fingerprint of the first samples to the part of a Stream that began with them.
type prints struct {
	mu    sync.Mutex
	parts map[uint64]int
}

// recordPrint records the fingerprint of a part. It returns the part that was recorded with the
// same fingerprint before, if any.
func (p *prints) recordPrint(print uint64, part int) (other int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parts == nil {
		p.parts = make(map[uint64]int)
	}
	other, ok = p.parts[print]
	p.parts[print] = part
	return other, ok
}
