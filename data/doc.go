// Package data has data sets, and makes batches of them.
//
//	train := datasets.Digits(12_000, 1) // or datasets.MNIST(dir, true)
//	loader := data.NewLoader(train, data.Options{
//		BatchSize: 64, Shuffle: true, Seed: 1,
//		Transform: data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd)),
//	})
//	defer loader.Close()
//	for batch, err := range loader.Batches(ctx) {
//		if err != nil {
//			return err
//		}
//		images, labels := batch[0], batch[1] // (64, 1, 28, 28) float32 and (64) int64
//	}
//
// Digits draws a set on the spot, [MNIST] and [OpenIDX] read files, and package data/download
// fetches the original ones. A set that several processes read is loaded once, moved to shared
// memory by Share and passed to the workers as an argument; each has a [Loader] of its own, with
// its own seed, or with a [Shard] of the samples.
//
// The workers of a Loader are goroutines or processes, and what they make depends on neither: a
// sample is a function of the seed, the epoch and its number. A worker that dies is replaced; a
// State goes on in another program. See docs/data.md.
//
// A batch is the consumer's, which closes it when it is done with it: [Batch.Close]. One that is
// dropped instead costs time. Set [Options].Shared for batches that are sent to another process.
package data
