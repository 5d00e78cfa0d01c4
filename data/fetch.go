package data

import (
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
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

// fields is fetchResult without its methods, so that its encoding plan does not call them.
type fields fetchResult

var fieldsPlan = sync.OnceValues(codec.PlanOf[fields])

// MarshalWire encodes a result. The ownership of its batch passes to the receiver.
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

// UnmarshalWire decodes a result written by MarshalWire.
func (r *fetchResult) UnmarshalWire(d *codec.Decoder) error {
	plan, err := fieldsPlan()
	if err != nil {
		return err
	}
	f, err := plan.Decode(d)
	*r = fetchResult(f)
	return err
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

// request returns the request to a worker. The caller must pass it to [fetch.release].
func (f *fetch) request() fetchRequest {
	r := fetchRequest{Epoch: f.p.epoch, Part: f.b.part, From: f.b.from, N: f.n, Batch: batchKey(f.p.epoch, f.b.number)}
	if f.b.part.Count == 0 {
		r.Indices = f.b.indices[f.from : f.from+f.n]
	}
	if f.kind == fetchRows {
		r.Into, r.Like = f.b.buffer.allRows(), f.b.like
		if f.n < f.b.buffer.rows {
			r.Into = r.Into.viewRows(f.from, f.n)
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
