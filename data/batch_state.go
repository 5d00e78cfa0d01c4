package data

import (
	"fmt"
	"slices"
)

// Note [The way of a batch]
// The plan makes a batchState, and the prefetcher moves it from phase to phase until it is
// delivered to the consumer. Workers receive a fetchRequest and return a fetchResult. The two sides
// share no other state, whether a worker is a goroutine or a process.
//
// If all samples have one layout, workers write them to the rows of one buffer. The layout is taken
// from the previous batch, or from the first sample of the batch itself. If a sample turns out to
// have another layout, the batch begins again. Batches without a common layout are made by one
// worker each.

// A batchPhase is the progress of a batch.
type batchPhase uint8

const (
	planned    batchPhase = iota // nothing has been requested
	probing                      // one sample was requested, to learn the layout
	assuming                     // rows were requested, in the layout of the previous batch
	filling                      // rows were requested, in the layout of its own first sample
	mismatched                   // a row did not fit; waits for the other requests
	making                       // a worker was asked to make the whole batch
	ready                        // the batch or its error can be delivered
)

// phaseAfter lists the phases that may follow each phase.
var phaseAfter = [...][]batchPhase{
	planned:    {probing, assuming, making, ready},
	probing:    {filling, making, ready},
	assuming:   {mismatched, ready},
	filling:    {ready},
	mismatched: {probing, making, ready},
	making:     {ready},
	ready:      {},
}

var phaseNames = [...]string{"planned", "probing", "assuming", "filling", "mismatched", "making", "ready"}

func (p batchPhase) String() string { return phaseNames[p] }

// A batchState is a batch from its planning to its delivery. The fields from phase on are guarded
// by prefetcher.mu until delivery.
type batchState struct {
	number  int   // number of the batch in this iteration
	indices []int // samples of a Dataset
	portion       // samples of a Stream, instead of indices

	phase    batchPhase
	requests int          // requests in flight
	bytes    int          // size; if unknown, an estimate from the previous batch
	buffer   *batchBuffer // rows written by workers; nil if a worker makes the batch
	batch    Batch
	spec     string        // structure of a structured batch
	like     string        // structure of its samples
	bad      []SampleError // At is the position in the batch

	asked, began, done int64 // timeline: first request, begin of the first worker, completion
	err                error
}

// A portion is the range of a part of a Stream that forms a batch.
type portion struct {
	part     Part
	progress *progress   // progress of the part
	before   *batchState // batch that must be read first; nil once it was
	from     int         // samples of the part before this batch
	size     int         // samples wanted
	read     int         // samples read
	kept     int         // samples of these in the batch, as reported by a Source
	end      bool        // the part has ended
}

// setPhase moves a batch to its next phase. It panics if phaseAfter does not allow it. The
// caller must hold prefetcher.mu.
func (b *batchState) setPhase(next batchPhase) {
	if !slices.Contains(phaseAfter[b.phase], next) {
		panic(fmt.Sprintf("data: invalid batch state transition from %v to %v", b.phase, next))
	}
	b.phase = next
}

// isEmpty reports whether a ready batch has neither samples nor an error to deliver, because it
// was planned beyond the end of its part of a Stream.
func (b *batchState) isEmpty() bool {
	return b.batch == nil && b.err == nil && len(b.bad) == 0 && b.read == 0
}
