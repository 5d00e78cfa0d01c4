package maker

import (
	"context"
	"iter"

	"github.com/shoal-mp/shoal/internal/tree"
)

// A Maker makes batches of a Loader in any order. Each is a function of the Loader's seed, the
// epoch and its number, or its Portion, alone. Several goroutines may use it.
type Maker interface {
	// Identity returns what the batches follow from, for a comparison with that of another process.
	Identity() Identity
	// Batch makes a batch of an epoch in shared memory, which the caller closes.
	Batch(ctx context.Context, epoch, number int) (Batch, error)
	// Gather makes a batch of the samples of these numbers.
	Gather(ctx context.Context, epoch int, indices []int) (Batch, error)
	// Source is for a Stream, of which Batch and Gather make nothing.
	Source
	// Workers returns how many workers load samples.
	Workers() int
	// Close ends the workers. The Loader's data set stays open.
	Close() error
}

// A Source makes the batches of a Stream by portions. A Loader of NewLoader has no workers, but a
// Reader of the Source for each of its loops.
type Source interface {
	Reader() Reader
}

// A Reader reads a Stream for one loop. It keeps each part open where its last Portion has ended,
// and reads the part again if another one is asked for than the next. Several goroutines may use
// it, each for a part of its own.
type Reader interface {
	// Read makes a batch in shared memory, which the caller closes. If ctx ends, so may the Reader.
	Read(ctx context.Context, p Portion) (Batch, error)
	// Close ends all that is being read.
	Close() error
}

// A Portion is N samples of a part of a Stream after the first From.
type Portion struct {
	Epoch       int
	Part, Count int // part Part of Count
	From, N     int
}

// A Batch is a batch that a Maker has made. It has no tensors if its Loader has skipped all of its
// samples, and where its part of a Stream was over before.
type Batch struct {
	tree.Value
	Samples int
	Read    int  // samples of its part of a Stream, with those that were skipped
	End     bool // the part is over
}

// Close closes the tensors.
func (b Batch) Close() {
	for _, t := range b.Tensors {
		t.Close()
	}
}

// An Identity is what the batches of a Loader follow from.
type Identity struct {
	Seed      uint64 `json:"seed"`
	Samples   int    `json:"samples"`    // of the data set
	BatchSize int    `json:"batch_size"` // 0 for a BatchSampler
	Batches   int    `json:"batches"`    // of an epoch
	Order     uint64 `json:"order"`      // hash of the order of epoch 0
	// of a Stream, which has no Samples, Batches and Order
	Parts    int  `json:"parts"` // 0 for a Dataset
	DropLast bool `json:"drop_last"`
}

// Data is what package data does for the functions below. They find its methods by their names, so
// that the linker leaves them, and all that is behind them, out of programs that call none of these
// functions.
var Data any

// Open makes a Maker of a *data.Loader.
func Open(loader any) (Maker, error) {
	return Data.(interface {
		Open(loader any) (Maker, error)
	}).Open(loader)
}

// NewLoader makes a *data.Loader, with data.Options of a Stream, whose batches s makes.
func NewLoader(s Source, opts any) (loader any) {
	return Data.(interface {
		NewLoader(s Source, opts any) (loader any)
	}).NewLoader(s, opts)
}

// Each yields the batches of an epoch of a *data.Loader, as its method Epoch does.
func Each(ctx context.Context, loader any, epoch int) iter.Seq2[Batch, error] {
	return Data.(interface {
		Each(ctx context.Context, loader any, epoch int) iter.Seq2[Batch, error]
	}).Each(ctx, loader, epoch)
}
