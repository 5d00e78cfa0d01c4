package maker

import (
	"context"
	"iter"

	"github.com/shoal-mp/shoal/internal/tree"
)

// A Maker makes batches of a Loader in any order. Each batch depends only on the Loader's seed, the
// epoch, and its number or [Portion]. A Maker may be used from several goroutines. The caller must
// close it.
type Maker interface {
	// Identity returns the parameters that determine the batches, for comparison with another
	// process.
	Identity() Identity
	// Batch makes a batch of an epoch in shared memory. The caller must close it. Batch fails for a
	// Stream.
	Batch(ctx context.Context, epoch, number int) (Batch, error)
	// Gather makes a batch of the samples with the given indices. The caller must close it. Gather
	// fails for a Stream.
	Gather(ctx context.Context, epoch int, indices []int) (Batch, error)
	// Source makes batches of a Stream.
	Source
	// Workers returns the number of workers that load samples.
	Workers() int
	// Close stops the workers. It does not close the Loader's data set.
	Close() error
}

// A Source makes the batches of a Stream by portions. A Loader from [NewLoader] has no workers;
// each of its loops uses a [Reader] of the Source.
type Source interface {
	Reader() Reader
}

// A Reader reads a Stream for one loop. It keeps each part open at the end of its latest [Portion],
// and reads the part again from its beginning if the next request does not follow. A Reader may be
// used from several goroutines, but each part by only one at a time. The caller must close it.
type Reader interface {
	// Read makes a batch in shared memory. The caller must close it. If ctx ends, the Reader may
	// end too.
	Read(ctx context.Context, p Portion) (Batch, error)
	// Close ends all reads.
	Close() error
}

// A Portion is a range of N samples in a part of a Stream, after the first From samples.
type Portion struct {
	Epoch       int
	Part, Count int // part number Part of Count
	From, N     int
}

// A Batch is a batch made by a [Maker] or a [Reader]. It has no tensors if all of its samples were
// skipped, or if its part of a Stream had already ended.
type Batch struct {
	tree.Value
	Samples int
	Read    int  // samples read from the part of a Stream, including skipped ones
	End     bool // the part has ended
}

// Close closes the tensors.
func (b Batch) Close() {
	for _, t := range b.Tensors {
		t.Close()
	}
}

// An Identity consists of the parameters that determine the batches of a Loader.
type Identity struct {
	Seed      uint64 `json:"seed"`
	Samples   int    `json:"samples"`    // in the data set
	BatchSize int    `json:"batch_size"` // 0 for a BatchSampler
	Batches   int    `json:"batches"`    // in an epoch
	Order     uint64 `json:"order"`      // hash of the order of epoch 0
	// for a Stream, which has no Samples, Batches and Order
	Parts    int  `json:"parts"` // 0 for a Dataset
	DropLast bool `json:"drop_last"`
}

// Data is set by package data. It must have the methods Open, NewLoader and Each, which the
// functions below call by name. The linker can thus omit these methods, and the code that they
// call, from programs that use none of the functions.
var Data any

// Open returns a [Maker] for loader, a *data.Loader, which it leaves open. The caller must close
// the Maker. Open returns an error if the Loader's World is larger than 1.
func Open(loader any) (Maker, error) {
	return Data.(interface {
		Open(loader any) (Maker, error)
	}).Open(loader)
}

// NewLoader returns a *data.Loader of batches from s, which the caller must close. opts must be
// data.Options for a Stream. It panics if they are invalid.
func NewLoader(s Source, opts any) (loader any) {
	return Data.(interface {
		NewLoader(s Source, opts any) (loader any)
	}).NewLoader(s, opts)
}

// Each yields the batches of an epoch of a *data.Loader, as its method Epoch does. The consumer
// must close each batch.
func Each(ctx context.Context, loader any, epoch int) iter.Seq2[Batch, error] {
	return Data.(interface {
		Each(ctx context.Context, loader any, epoch int) iter.Seq2[Batch, error]
	}).Each(ctx, loader, epoch)
}
