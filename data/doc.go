// Package data provides data sets, samplers, transforms and a loader of batches, as
// torch.utils.data does.
//
//	train := datasets.Digits(12_000, 1) // or datasets.MNIST
//	defer train.Close()
//	loader := data.NewLoader(train, data.Options{
//		BatchSize: 64, Shuffle: true, Seed: 1,
//		Transform: data.Compose(data.ToTensor, data.Normalize(0.13, 0.31)),
//	})
//	defer loader.Close()
//	for batch, err := range loader.Batches(ctx) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(batch[0].Shape(), batch[1].Shape()) // [64 1 28 28] [64]
//		batch.Close()
//	}
//
// Start with [NewLoader], [Loader.Batches] and [Batch.Close].
//
// Package data/datasets reads common file formats, and package data/download fetches MNIST. If
// several training processes use one data set, one of them should load it, move it to shared memory
// with [TensorDataset.Share] and pass it to the others as an argument. Each process makes its own
// [Loader], with its own seed or with a [Shard] of the samples.
//
// Workers are goroutines or processes. A sample is a function of the seed, the epoch and its index,
// so the batches do not depend on the workers. A Loader replaces a worker that dies. A [State] lets
// another program continue an epoch. See docs/data.md.
//
// The consumer should close each batch with [Batch.Close] when it is done, so that the next batch
// can reuse the memory. Dropping a batch instead costs time. To send batches to another process,
// set Options.Shared.
package data
