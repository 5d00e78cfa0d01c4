package data

import (
	"cmp"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/trace"
)

// Options configure a [Loader]. The zero value loads batches of one sample, in order, in the
// consumer's goroutine.
type Options struct {
	BatchSize int  // samples in a batch; 0 means 1, and Single one sample without a batch dimension
	Shuffle   bool // load in a new random order every epoch
	// seed of the orders and of random samples. The same seed and epoch give the same batches. 0 is
	// a seed like any other; tensor.InitialSeed() differs between processes
	Seed    uint64
	Sampler Sampler      // the order of samples, instead of Shuffle
	Batches BatchSampler // the batches, instead of BatchSize, Shuffle, Sampler and DropLast
	// leave out the last batch of an epoch, or of a part of a Stream, if it is smaller than the
	// others
	DropLast bool
	Collate  *Collate // makes a batch of samples; nil means Stack or DefaultCollate

	// Ragged pads fields that differ in length between samples, or concatenates them.
	Ragged Ragged

	// World is the number of processes that share the samples, as in [Distributed], and Rank is the
	// number of this process. A World of 0 means 1.
	Rank, World int

	// Workers is the number of workers that load batches ahead. With 0 the consumer loads each
	// batch itself when it asks for it. Kind selects goroutines or processes. Both run on the CPUs
	// of this process, so more workers than CPUs only help if loading waits for a disk or a
	// network.
	Workers int
	Kind    Kind

	// Prefetch is the number of batches that are ready or being made while the consumer works on
	// one; 0 means two for each worker. PrefetchBytes limits the bytes of these batches, but always
	// allows one batch; 0 means 256 MiB.
	Prefetch      int
	PrefetchBytes int

	AsReady    bool          // deliver batches as they become ready, not in the Sampler's order
	Persistent bool          // keep workers until Close instead of for one epoch
	Timeout    time.Duration // longest wait for a batch; 0 means no limit
	Process    shoal.Options // options of worker processes: start method, niceness, CPUs

	// Retries is the number of additional attempts for a sample that could not be loaded or that
	// killed its worker process; after a death there are at least two. A worker that dies while it
	// starts is retried likewise. When the attempts are used up, the Loader calls Skip in the
	// consumer's goroutine. If Skip returns true, the batch is delivered without the sample. If it
	// returns false or is nil, the sample's error ends the epoch.
	Retries int
	Skip    func(err *SampleError) bool

	// Parts is the number of parts into which a [Stream] is divided, at least World. 0 means the
	// larger of 16 and World. The batches depend on Parts.
	Parts int
	Debug bool // return ErrPart if two parts of a Stream begin with equal samples

	Transform Transform // applied by workers to the first tensor of each sample, such as an image

	// Trace receives a track for each worker, with the spans load (which contains fetch, transform
	// and collate), deliver and wait. A further track shows the consumer: wait for a batch, and use
	// it. Nil disables tracing.
	Trace *trace.Trace

	// Shared allocates each batch as one block of shared memory, so that it can be sent to another
	// process.
	Shared bool

	// Reuse makes the Loader close each batch and overwrite its memory when the consumer asks for
	// the next one. The consumer may call [Batch.Close], but need not. It must not use the batch,
	// or a slice of its memory, after asking for the next one: a kept tensor panics as closed, and
	// a kept slice shows the values of a later batch. To keep a batch, clone it. Reuse has no
	// effect if Shared is set.
	Reuse bool

	// PinMemory puts batches into shared memory with locked pages, so that a device can copy them
	// by DMA. The pages stay locked until both the batch and the Loader are closed. PinMemory has
	// no effect if the program imports no device package, or if the machine has no device
	// (tensor.ErrDevice).
	PinMemory bool
}

// Single, as the BatchSize, makes each batch one sample without a batch dimension, as torch's
// batch_size=None does.
const Single = -1

// A Kind is the kind of a Loader's workers: goroutines or processes.
type Kind uint8

const (
	// Goroutines is the default. They start at no cost and share the Dataset with the consumer.
	Goroutines Kind = iota
	// Processes have their own heaps. The Loader replaces a process that dies. The type of the
	// Dataset must be registered with wire.RegisterType.
	Processes
	// Auto begins with goroutines, tries processes if samples are expensive, and then keeps the
	// kind that needs less time for a sample.
	Auto
)

const (
	defaultPrefetchBytes = 256 << 20
	defaultParts         = 16
)

// withDefaults returns the options with defaults filled in. stream is set for a Loader of a
// Stream, which excludes an order of samples. It panics if an option is out of range or if
// options exclude each other.
func (o Options) withDefaults(stream bool) Options {
	misuse := func(wrong bool, format string, args ...any) {
		if wrong {
			panic("data: NewLoader: " + fmt.Sprintf(format, args...))
		}
	}
	misuse(o.BatchSize < Single || o.Workers < 0 || o.Prefetch < 0 || o.PrefetchBytes < 0 || o.Retries < 0 ||
		o.Parts < 0 || o.Timeout < 0,
		"BatchSize %d, Workers %d, Prefetch %d, PrefetchBytes %d, Retries %d, Parts %d, Timeout %v: want all at "+
			"least 0",
		o.BatchSize, o.Workers, o.Prefetch, o.PrefetchBytes, o.Retries, o.Parts, o.Timeout)
	misuse(o.Parts > maxParts || o.World > maxParts, "got %d parts and %d ranks, want at most %d", o.Parts,
		o.World, maxParts)
	misuse(o.Kind > Auto, "unknown kind %d of workers", o.Kind)
	misuse(o.Shuffle && o.Sampler != nil, "Shuffle and a Sampler exclude each other")
	misuse(o.Batches != nil && (o.BatchSize != 0 || o.Shuffle || o.Sampler != nil || o.DropLast),
		"Batches excludes BatchSize, Shuffle, Sampler and DropLast")
	misuse(o.BatchSize == Single && o.DropLast, "DropLast does not apply to single samples")
	misuse(stream && (o.Shuffle || o.Sampler != nil || o.Batches != nil),
		"a Stream has its own order: leave out Shuffle, Sampler and Batches")
	misuse(o.Ragged != nil && (o.Collate != nil || o.BatchSize == Single),
		"Ragged cannot be combined with a Collate, which may call DefaultCollate instead, or with single samples")
	misuse(o.Ragged.invalidRule() != "", "%s", o.Ragged.invalidRule())
	misuse(o.Transform != nil && o.Collate != nil && o.Collate.values,
		"Transform cannot be combined with Collate %q of values, which must transform them itself",
		collateName(o.Collate))
	misuse(o.Persistent && o.Workers == 0, "Persistent requires Workers")
	o.World = cmp.Or(o.World, 1)
	misuse(o.Rank < 0 || o.Rank >= o.World, "Rank %d: want at least 0 and less than World %d", o.Rank, o.World)
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
