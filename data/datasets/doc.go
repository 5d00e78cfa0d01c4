// Package datasets reads data sets in common formats: MNIST and other IDX files, folders of images,
// tar shards of samples, arrays in NumPy and HDF5 files, and lists and maps of records. [Digits]
// generates a set without files.
//
//	train, err := datasets.MNIST(dir, true)
//	if err != nil {
//		return err // *encoding.FileError names the file and the byte
//	}
//	defer train.Close()
//	loader := data.NewLoader(train, data.Options{BatchSize: 64, Shuffle: true, Workers: 2})
//
// Each set implements [data.Dataset] or [data.Stream] and can be sent to worker processes.
package datasets
