package data

import (
	"sync"

	"github.com/shoal-mp/shoal/data/internal/maker"
	"github.com/shoal-mp/shoal/internal/tree"
)

// A sourceExecutor reads the batches of a Stream from a [maker.Source], such as a data host.
type sourceExecutor struct {
	reader maker.Reader
	asked  sync.WaitGroup
}

func (e *sourceExecutor) submit(f *fetch) {
	r, begin := f.request(), f.p.timeline.clockTime()
	e.asked.Go(func() {
		b, err := e.reader.Read(f.p.ctx,
			maker.Portion{Epoch: r.Epoch, Part: r.Part.Index, Count: r.Part.Count, From: r.From, N: r.N})
		if b.Spec == tree.Tensors(len(b.Tensors)) {
			b.Spec = "" // a plain batch
		}
		f.p.completeFetch(f, fetchResult{Batch: b.Tensors, Spec: b.Spec, Kept: b.Samples, Read: b.Read, End: b.End,
			Began: begin}, err)
	})
}

func (e *sourceExecutor) runOne() bool { return false }

func (e *sourceExecutor) isBroken() bool { return false }

func (e *sourceExecutor) close() {
	e.asked.Wait()
	e.reader.Close()
}
