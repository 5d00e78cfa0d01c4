package data

import (
	"cmp"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/trace"
)

// Options configure a Loader. With the zero value it makes batches of one sample, in order, in the
// consumer's goroutine.
type Options struct {
	BatchSize int  // samples in a batch; 0 means 1, and Single one sample without a batch dimension
	Shuffle   bool // load in a new random order every epoch
	// seed of the orders and of random samples. The same seed and epoch give the same batches. 0 is
	// a seed like others; tensor.InitialSeed() is another one in each process
	Seed    uint64
	Sampler Sampler      // the order, instead of Shuffle
	Batches BatchSampler // the batches, instead of BatchSize, Shuffle, Sampler and DropLast
	// leave out the last batch of an epoch, or of a Stream's part, if it is smaller than the others
	DropLast bool
	Collate  *Collate // makes a batch of samples; nil means Stack or DefaultCollate

	// Ragged pads fields whose rows differ in length, or stores the rows one after the other.
	Ragged Ragged

	// World is the number of processes that share the samples, as in Distributed, and Rank the
	// number of this process. World 0 means 1.
	Rank, World int

	// Workers is how many workers load batches ahead; 0 means that the consumer loads each batch
	// itself when it asks for it. Kind says whether they are goroutines or processes. Both run on
	// the CPUs of this process, so more workers than CPUs only help if loading waits for a disk or
	// a network.
	Workers int
	Kind    Kind

	// Prefetch is how many batches are ready or being made while the consumer works on one; 0 means
	// two for each worker. PrefetchBytes limits the bytes of these batches, unless a single batch
	// is larger; 0 means 256 MiB.
	Prefetch      int
	PrefetchBytes int

	AsReady    bool          // deliver batches in the order in which they are ready, not in the Sampler's
	Persistent bool          // keep workers until Close, not only for one epoch
	Timeout    time.Duration // longest wait for a batch; 0 means for ever
	Process    shoal.Options // options of worker processes: their start, niceness, CPUs

	// Retries is how often the Loader tries a sample again that could not be loaded, or whose
	// worker process died; after a death it tries at least twice. A worker that is killed while it
	// starts counts likewise. Then the Loader calls Skip, in the consumer's goroutine. If Skip
	// returns true, the batch is delivered without the sample; if it returns false or is nil, the
	// sample's error ends the epoch.
	Retries int
	Skip    func(err *SampleError) bool

	// Parts is the number of parts in which a Stream is read, at least World. 0 means 16, or one
	// for each worker if there are more than 16 in all ranks. The batches depend on Parts.
	Parts int
	Debug bool // return ErrPart if two parts of a Stream begin with equal samples

	Transform Transform // workers apply it to the first tensor of each sample, such as an image

	// Trace gets a track of each worker, with what it does and when: load, and in it fetch,
	// transform and collate; deliver, and wait. Another track has what the consumer does: wait for
	// a batch, and use it. Nil means none.
	Trace *trace.Trace

	// Shared makes each batch in one block of shared memory, to send it to another process.
	Shared bool

	// Reuse makes the Loader close each batch and overwrite its memory when the consumer asks for
	// the next one. The consumer may call Batch.Close, but need not. It must not use a batch, or a
	// slice of its memory, afterwards: a kept tensor panics as closed, and a kept slice has the
	// values of a later batch. Clone a batch to keep it. With Shared, Reuse has no effect.
	Reuse bool

	// PinMemory puts batches into shared memory whose pages are locked, so that a device copies
	// them itself. The pages stay locked until the batch and the Loader are closed. PinMemory has
	// no effect if the program imports no package with devices, or has no device
	// (tensor.ErrDevice).
	PinMemory bool
}

// Single, as the BatchSize, makes each batch one sample without a dimension for the batch: torch's
// batch_size=None.
const Single = -1

// A Kind says whether workers are goroutines or processes.
type Kind uint8

const (
	// Goroutines is the default. They cost nothing to start, and read the Dataset without sending
	// it.
	Goroutines Kind = iota
	// Processes have heaps of their own. The Loader replaces one that dies. The type of the Dataset
	// is registered by wire.RegisterType.
	Processes
	// Auto begins with goroutines, tries processes if a sample takes long, and stays with the kind
	// that takes less time for a sample.
	Auto
)

const (
	defaultPrefetchBytes = 256 << 20
	defaultParts         = 16
)

// complete checks the options and fills in what is not set. It panics where they contradict each
// other.
func (o Options) complete(stream bool) Options {
	misuse := func(wrong bool, format string, args ...any) {
		if wrong {
			panic("data: NewLoader: " + fmt.Sprintf(format, args...))
		}
	}
	misuse(o.BatchSize < Single || o.Workers < 0 || o.Prefetch < 0 || o.PrefetchBytes < 0 || o.Retries < 0 ||
		o.Parts < 0 || o.Timeout < 0,
		"BatchSize %d, Workers %d, Prefetch %d, PrefetchBytes %d, Retries %d, Parts %d, Timeout %v: none can be negative",
		o.BatchSize, o.Workers, o.Prefetch, o.PrefetchBytes, o.Retries, o.Parts, o.Timeout)
	misuse(o.Parts > maxParts || o.World > maxParts, "%d parts, %d ranks: at most %d", o.Parts, o.World, maxParts)
	misuse(o.Kind > Auto, "kind %d of workers", o.Kind)
	misuse(o.Shuffle && o.Sampler != nil, "Shuffle and a Sampler exclude each other")
	misuse(o.Batches != nil && (o.BatchSize != 0 || o.Shuffle || o.Sampler != nil || o.DropLast),
		"Batches excludes BatchSize, Shuffle, Sampler and DropLast")
	misuse(o.BatchSize == Single && o.DropLast, "DropLast of single samples")
	misuse(stream && (o.Shuffle || o.Sampler != nil || o.Batches != nil),
		"a Stream has its own order: no Shuffle, Sampler or Batches")
	misuse(o.Ragged != nil && (o.Collate != nil || o.BatchSize == Single),
		"Ragged with a Collate, which does that by DefaultCollate, or with single samples")
	misuse(o.Ragged.wrong() != "", "%s", o.Ragged.wrong())
	misuse(o.Transform != nil && o.Collate != nil && o.Collate.values,
		"a Transform with the Collate %q of values, which does that itself", collateName(o.Collate))
	misuse(o.Persistent && o.Workers == 0, "Persistent without Workers")
	o.World = cmp.Or(o.World, 1)
	misuse(o.Rank < 0 || o.Rank >= o.World, "Rank %d of %d", o.Rank, o.World)
	o.BatchSize = cmp.Or(o.BatchSize, 1)
	o.Prefetch = cmp.Or(o.Prefetch, 2*o.Workers)
	o.PrefetchBytes = cmp.Or(o.PrefetchBytes, defaultPrefetchBytes)
	o.Parts = max(cmp.Or(o.Parts, defaultParts), o.World)
	if o.Process.Start == shoal.GoroutineStart ||
		o.Process.Start == shoal.DefaultStart && shoal.CurrentStartMethod() == shoal.GoroutineStart {
		o.Process.Start = shoal.SpawnStart
	}
	return o
}

func collateName(c *Collate) string {
	if c == nil {
		return ""
	}
	return c.name
}
