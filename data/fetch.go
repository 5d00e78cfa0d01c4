package data

import (
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A fetchRequest asks a worker to write samples to rows of a batch, or to make a batch.
type fetchRequest struct {
	Loader  uint64 // ID of the Loader in its process, for worker processes
	Epoch   int
	Indices []int
	Into    Batch  // rows to write, one for each index; nil if the worker makes the batch
	Like    string // structure that the samples must have; empty for plain ones
	Part    Part   // for a Stream, instead of Indices: N samples after the first From
	From, N int
	Batch   uint64 // key of the batch on the timeline

	Deadline sys.Deadline // deadline of the epoch's context, for worker processes
}

// A fetchResult is the result of a fetchRequest. The receiver owns Batch and must close it.
type fetchResult struct {
	Batch  Batch  // nil if Into was given
	Spec   string // structure of a structured batch
	Like   string // structure of its samples
	Bad    []failed
	Read   int    // samples of a Stream that were read
	Kept   int    // samples of these in the batch, if a Source made it
	End    bool   // the part has ended
	Print  uint64 // fingerprint of the part's first samples
	Worker int
	Kind   Kind
	Took   time.Duration
	Began  int64  // on the timeline's clock
	sent   func() `wire:"-"` // called when the result has been sent to another process; may be nil
}

// A failed is a sample that could not be loaded.
type failed struct {
	At  int // position in the request
	Err error
}

// A fetch is a request to a worker, together with the batch that receives the result.
type fetch struct {
	p     *prefetcher
	b     *batchState
	from  int // position of the first sample in the batch
	n     int
	kind  fetchKind
	deads int // workers that died while running it
}

type fetchKind uint8

const (
	fetchRows   fetchKind = iota // write rows of the batch's buffer
	fetchSample                  // load one sample, to learn the layout of the buffer
	fetchBatch                   // make the whole batch
)
