package data

import (
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
)

// A fetchRequest is what a worker is to do at once: to write some samples to rows of a batch, or to
// make a batch of them.
type fetchRequest struct {
	Loader  uint64 // number of the Loader in its process, for a worker that is a process
	Epoch   int
	Indices []int
	Into    Batch  // as many rows; nil for a batch of the worker's making
	Like    string // description of the samples that belong there; empty for plain ones
	Part    Part   // of a Stream: instead of Indices, the N samples after the first From
	From, N int
	Batch   uint64 // what it is for, on the timeline
}

// A fetchResult is what came of a fetchRequest. Its Batch is the receiver's, who closes it.
type fetchResult struct {
	Batch  Batch  // unless Into was given
	Spec   string // of the batch, if it is structured
	Like   string // of its samples
	Bad    []failed
	Read   int    // samples of a Stream
	Kept   int    // of these in the batch, if a Source has made it
	End    bool   // the part is over
	Print  uint64 // fingerprint of the part's first samples
	Worker int
	Kind   Kind
	Took   time.Duration
	Began  int64  // on the clock of the timeline
	sent   func() `wire:"-"` // told when the result is on its way to another process; nil for no telling
}

// A failed is a sample that could not be loaded.
type failed struct {
	At  int // in the request
	Err error
}

// fields is a fetchResult without its methods, for the plan of its message.
type fields fetchResult

var fieldsPlan = sync.OnceValues(codec.PlanOf[fields])

// MarshalWire writes a result. Its batch, which the worker has made, is then the receiver's alone.
func (r *fetchResult) MarshalWire(e *codec.Encoder) error {
	plan, err := fieldsPlan()
	if err != nil {
		return err
	}
	b := r.Batch
	sent := r.sent
	e.OnDone(codec.WatcherFunc(func(bool) {
		closeAll(b)
		if sent != nil {
			sent()
		}
	}))
	return plan.Encode(e, fields(*r))
}

// UnmarshalWire is the counterpart of MarshalWire.
func (r *fetchResult) UnmarshalWire(d *codec.Decoder) error {
	plan, err := fieldsPlan()
	if err != nil {
		return err
	}
	f, err := plan.Decode(d)
	*r = fetchResult(f)
	return err
}

// A fetch is a request on its way to a worker, and what the prefetcher has to know when its result
// comes.
type fetch struct {
	p     *prefetcher
	b     *batchState
	from  int // index of the first sample, in the batch
	n     int
	kind  fetchKind
	deads int // workers that have died of it
}

type fetchKind uint8

const (
	fetchRows   fetchKind = iota // rows of the batch's buffer
	fetchSample                  // one sample, to learn what a buffer must be like
	fetchBatch                   // the worker makes the batch
)

// request returns what the worker is told. It is to be released.
func (f *fetch) request() fetchRequest {
	r := fetchRequest{Epoch: f.p.epoch, Part: f.b.part, From: f.b.from, N: f.n, Batch: batchKey(f.p.epoch, f.b.number)}
	if f.b.part.Count == 0 {
		r.Indices = f.b.indices[f.from : f.from+f.n]
	}
	if f.kind == fetchRows {
		r.Into, r.Like = f.b.buffer.all(), f.b.like
		if f.n < f.b.buffer.rows {
			r.Into = r.Into.rows(f.from, f.n)
		}
	}
	return r
}

// release closes the views of a request.
func (f *fetch) release(r fetchRequest) {
	if r.Into != nil && f.n < f.b.buffer.rows {
		closeAll(r.Into)
	}
}
