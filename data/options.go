package data

import (
	"cmp"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
)

// Options say how a Loader makes batches. The zero value makes batches of one sample, in order, in
// the consumer's goroutine.
type Options struct {
	BatchSize int  // samples in a batch; 0 means 1, and Single one sample without a dimension for the batch
	Shuffle   bool // in a new random order every epoch
	// of the orders, and of what is random in the samples; the same seed and epoch give the same
	// batches; 0 is one like others, tensor.InitialSeed() another in each process
	Seed    uint64
	Sampler Sampler      // the order, instead of Shuffle
	Batches BatchSampler // the batches, instead of BatchSize, Shuffle, Sampler and DropLast
	// without the last batch of an epoch, or of a Stream's part, if it is smaller than the others
	DropLast bool
	Collate  *Collate // makes a batch of samples in another way than Stack

	// Ragged pads fields whose rows differ in length, or puts them one after the other.
	Ragged Ragged

	// Rank is which of World processes this is, each of which gets its share of the samples; see
	// Distributed. World 0 means 1.
	Rank, World int

	// Workers is how many load batches ahead; 0 means that the consumer loads each batch when it
	// asks for it. Kind is what they are. Goroutines run on the CPUs that the process may use, and
	// processes get their part of these, so that more of them than CPUs only help where loading
	// waits for something.
	Workers int
	Kind    Kind

	// Prefetch is how many batches are ready or being made while the consumer works on one; 0 means
	// two for each worker. PrefetchBytes is how many bytes these have at most, though one batch may
	// be larger; 0 means 256 MiB.
	Prefetch      int
	PrefetchBytes int

	AsReady    bool          // batches come in the order in which they are ready, not in that of the Sampler
	Persistent bool          // workers live until Close, and not for one epoch
	Timeout    time.Duration // for a batch to be ready; 0 means for ever
	Process    shoal.Options // of workers that are processes: how they start, their niceness, their CPUs

	// Retries is how often a sample is tried again that could not be loaded. Skip is asked then, in
	// the consumer's goroutine, whether the batch is delivered without it; nil means that the
	// sample's error ends the epoch.
	Retries int
	Skip    func(err *SampleError) bool

	// Parts is in how many parts a Stream is read, at least World; 0 means 16, or one for each
	// worker where more of them are wanted than that. The batches depend on it.
	Parts int
	Debug bool // find a Stream that does not heed its Part: ErrPart where two parts begin alike

	Transform Transform // of the first tensor of each sample, such as an image; workers do it

	// Shared makes each batch in one block of shared memory, to send to another process. The
	// consumer closes it.
	Shared bool

	// Reuse has the memory of each batch be written again when the next one is asked for, so that
	// no batch is to be closed. Danger: kept = append(kept, batch) then keeps the last batch many
	// times, without an error; what is kept has to be cloned. Shared overrules it.
	Reuse bool

	// PinMemory has batches lie in shared memory whose pages are locked until the Loader, or who
	// gets the batch, closes it, which a device copies by itself. It asks for nothing where there
	// is no device: where the program imports no package that has devices, or that one's error
	// wraps tensor.ErrDevice.
	PinMemory bool
}

// Single is the BatchSize of batches that are one sample, without a dimension for the batch:
// torch's batch_size=None.
const Single = -1

// A Kind is what workers are.
type Kind uint8

const (
	// Goroutines is the default: they cost nothing and read the Dataset where it is.
	Goroutines Kind = iota
	// Processes have a heap of their own, may die, and are replaced. The Dataset is of a type that
	// was given to wire.RegisterType.
	Processes
	// Auto begins with goroutines, tries processes where a sample takes long, and stays with what
	// needs less time for one.
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
