package maker

import (
	"context"

	"github.com/shoal-mp/shoal/internal/tree"
)

// A Maker makes batches of a Loader in any order. Each is a function of the Loader's seed, the
// epoch and its number alone. Several goroutines may use it.
type Maker interface {
	// Identity returns what the batches follow from, for a comparison with that of another process.
	Identity() Identity
	// Batch makes a batch of an epoch in shared memory, which the caller closes.
	Batch(ctx context.Context, epoch, number int) (Batch, error)
	// Gather makes a batch of the samples of these numbers.
	Gather(ctx context.Context, epoch int, indices []int) (Batch, error)
	// Workers returns how many workers load samples.
	Workers() int
	// Close ends the workers. The Loader's data set stays open.
	Close() error
}

// A Batch is a batch that a Maker has made. It has no tensors if its Loader has skipped all of its
// samples.
type Batch struct {
	tree.Value
	Samples int
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
}

// Open makes a Maker of a *data.Loader. Package data sets it.
var Open func(loader any) (Maker, error)
