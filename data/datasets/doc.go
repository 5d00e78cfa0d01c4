// Package datasets reads data sets of known forms: MNIST and other IDX files, folders of images,
// tar shards of samples, arrays of numpy and HDF5 files, lists and maps in one file of records, and
// digits that it draws itself.
//
//	train, err := datasets.MNIST(dir, true)
//	if err != nil {
//		return err // *encoding.FileError names the file and the byte
//	}
//	defer train.Close()
//	loader := data.NewLoader(train, data.Options{BatchSize: 64, Shuffle: true, Workers: 2})
//
// Each is a [data.Dataset] or a [data.Stream] and crosses to workers that are processes.
package datasets
