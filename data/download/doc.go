// Package download fetches the original files of data sets.
//
//	if err := download.MNIST(ctx, "mnist", download.Mirror, nil); err != nil {
//		return err
//	}
//	train, err := datasets.MNIST("mnist", true)
//
// It stands apart from package data because it needs net/http, which makes a program dynamic where
// there is a C compiler: 0.8 ms before the first statement of each worker, and 6 MB of binary. The
// command shoal leaves it to a program of its own, shoal-download.
//
// The trap: a file of the right name with other contents is replaced.
package download
