// Package download fetches the original files of data sets.
//
//	if err := download.MNIST(ctx, "mnist", download.Mirror, nil); err != nil {
//		return err
//	}
//	train, err := datasets.MNIST("mnist", true)
//
// The package is not a part of package data since it imports net/http. A program with net/http is
// linked dynamically if a C compiler is found, which costs 0.8 ms at the start of each worker, and
// it is 6 MB larger. The command shoal runs a separate program, shoal-download, for this reason.
//
// The trap: a file of the right name with other contents is replaced.
package download
