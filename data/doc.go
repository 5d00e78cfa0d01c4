// Package data has data sets, samplers and transforms, and loads batches of samples, as
// torch.utils.data does.
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
// Package data/datasets reads files of known forms, and package data/download fetches MNIST. If
// several processes of a training read one set, one of them loads it, moves it to shared memory by
// Share and passes it to the others as an argument. Each process has a Loader of its own, with its
// own seed, or with a [Shard] of the samples.
//
// The workers of a Loader are goroutines or processes. A sample is a function of the seed, the
// epoch and its number, so the batches do not depend on the workers. A Loader replaces a worker
// that dies. A [State] lets another program go on. See docs/data.md.
//
// The trap: the consumer closes each batch when it is done with it, by [Batch.Close], so that the
// next batch gets the memory. A batch that is dropped instead costs time. Set Options.Shared for
// batches that are sent to another process.
package data
