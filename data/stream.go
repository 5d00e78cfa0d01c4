package data

import (
	"context"
	"iter"
)

// A Stream is a set of samples that are read one after the other: torch's IterableDataset. A Loader
// reads it in parts (Options.Parts). One worker at a time reads a part, from its beginning to its
// end. The number of parts does not follow the number of workers, so the batches do not depend on
// the workers.
//
// Samples yields the samples of one part. Together the parts have each sample once. The same part
// of the same epoch (see [WorkerInfo]) is the same sequence each time: after the death of a worker,
// and after Resume, the Loader reads a part again up to where it was. An error that Samples yields
// is the error of one sample; the part may go on after it.
type Stream interface {
	Samples(ctx context.Context, p Part) iter.Seq2[Sample, error]
}

// A Part is one of Count parts of a Stream. Ranks and workers divide the parts among them.
type Part struct{ Index, Count int }

// Has reports whether the part has item i of a Stream that deals out its items (files, records,
// lines) to the parts one by one.
func (p Part) Has(i int) bool { return i%p.Count == p.Index }
