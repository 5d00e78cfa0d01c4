// Package datasets reads data sets of known forms: MNIST and other IDX files, folders of images,
// tar shards of samples, arrays in files of numpy and HDF5, and lists and maps of records. [Digits]
// draws a set of its own.
//
//	train, err := datasets.MNIST(dir, true)
//	if err != nil {
//		return err // *encoding.FileError names the file and the byte
//	}
//	defer train.Close()
//	loader := data.NewLoader(train, data.Options{BatchSize: 64, Shuffle: true, Workers: 2})
//
// Each set is a data.Dataset or a data.Stream and can be sent to worker processes.
package datasets
