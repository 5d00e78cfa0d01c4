package data

import (
	"context"
	"iter"
)

// A Stream is a set of examples that are read one after the other: torch's IterableDataset. A
// Loader reads it in parts, each from its beginning to its end by one worker at a time; so many
// parts, whatever the number of workers is, that the batches do not depend on it.
//
// Samples yields the samples of one part: together the parts of a count are all samples, each once.
// The same part of the same epoch (see WorkerInfo) is the same sequence each time, because it is
// begun anew and read up to where it was when a worker has died and after a Resume. An error that
// is yielded is that of one sample, and the part goes on unless it ends.
type Stream interface {
	Samples(ctx context.Context, p Part) iter.Seq2[Sample, error]
}

// A Part is one of Count parts of a Stream, for those ranks and workers that share it.
type Part struct{ Index, Count int }

// Has reports whether the part has number i, where a Stream deals out what it has one by one:
// files, records, lines.
func (p Part) Has(i int) bool { return i%p.Count == p.Index }
