package data

import (
	"context"
	"iter"
)

// A Stream is a set of samples that must be read sequentially, as torch's IterableDataset is. A
// Loader divides it into Options.Parts parts. Each part is read by one worker at a time, from its
// beginning to its end. The number of parts does not depend on the number of workers, so neither do
// the batches.
//
// Samples yields the samples of one part. Together, the parts must yield each sample once. For the
// same part and epoch (see [WorkerInfo]), Samples must yield the same sequence on each call: after
// the death of a worker, and after [Loader.Resume], the Loader reads a part again from its
// beginning and skips the samples it has already seen. An error yielded by Samples belongs to one
// sample; the part may continue after it.
type Stream interface {
	Samples(ctx context.Context, p Part) iter.Seq2[Sample, error]
}

// A Part identifies one of Count parts of a [Stream]. The parts are divided among ranks and
// workers.
type Part struct{ Index, Count int }

// Has reports whether item i belongs to the part, for a [Stream] that assigns its items (files,
// records, lines) to the parts in round-robin order.
func (p Part) Has(i int) bool { return i%p.Count == p.Index }
