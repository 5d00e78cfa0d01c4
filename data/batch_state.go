package data

import (
	"fmt"
	"slices"
)

// Note [The way of a batch]
// The plan makes a batchState, and the prefetcher moves it from phase to phase until the consumer
// has the batch. Its workers get a fetchRequest and return a fetchResult, and nothing else is said
// between the two sides, whether a worker is a goroutine or a process.
//
// Workers write samples to the rows of one buffer where all samples have one layout. That is known
// from the batch before, or from the batch's own first sample. Where a sample turns out to have
// another layout, the batch begins anew. Batches without a layout are made by one worker each.

// A batchPhase is how far a batch has come.
type batchPhase uint8

const (
	planned    batchPhase = iota // nothing of it was asked for
	probing                      // one sample was asked for, to learn the layout
	assuming                     // rows were asked for, in the layout of the batch before
	filling                      // rows were asked for, in the layout of its own first sample
	mismatched                   // one of the rows did not fit: what else was asked for ends first
	making                       // a worker was asked for the batch
	ready                        // the consumer can have it, or its error
)

// phaseAfter has, for each phase, those that may follow.
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

// A batchState is a batch from its planning to its delivery. What is below phase is the
// prefetcher's, under its mu, until the batch is delivered.
type batchState struct {
	number  int   // of the batch in this iteration
	indices []int // its samples, of a Dataset
	portion       // of a Stream, instead of indices

	phase    batchPhase
	requests int          // under way
	bytes    int          // as far as they are known, and else as many as those of the batch before
	buffer   *batchBuffer // where workers write rows; nil where a worker makes the batch
	batch    Batch
	spec     string        // of the batch, if it is structured
	like     string        // of its samples
	bad      []SampleError // At is where in the batch

	asked, began, done int64 // on the timeline: a worker was asked, has begun, was the last to be done
	err                error
}

// A portion is what a batch has of a part of a Stream.
type portion struct {
	part     Part
	progress *progress   // of the part
	before   *batchState // that which has to be read first, nil once it was
	from     int         // samples of the part before this batch
	size     int         // samples wanted
	read     int         // samples read
	kept     int         // of these in the batch, as far as a Source has told
	end      bool        // of the part
}

// to moves a batch to its next phase.
func (b *batchState) to(next batchPhase) {
	if !slices.Contains(phaseAfter[b.phase], next) {
		panic(fmt.Sprintf("data: a batch that is %v cannot be %v next", b.phase, next))
	}
	b.phase = next
}

// empty reports whether there is nothing to deliver: it was planned behind the end of its part.
func (b *batchState) empty() bool {
	return b.batch == nil && b.err == nil && len(b.bad) == 0 && b.read == 0
}
