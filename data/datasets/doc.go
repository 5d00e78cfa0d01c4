// Package datasets reads data sets in common formats: MNIST and other IDX files, folders of images,
// tar shards of samples, arrays in NumPy and HDF5 files, and lists and maps of records. [Digits]
// generates a set without files.
//
//	train, err := datasets.NewImageFolder("photos", image.Resize{H: 64, W: 64})
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	loader := data.NewLoader(train, data.Options{BatchSize: 64, Shuffle: true})
//	defer loader.Close()
//	for batch, err := range loader.Batches(ctx) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(batch[0].Shape(), batch[1].Shape()) // images, classes
//		batch.Close()
//	}
//
// Start with [MNIST], [NewImageFolder] and [NewShards].
//
// Each set implements [data.Dataset] or [data.Stream] and can be sent to worker processes.
package datasets
