// Package download fetches the original files of data sets.
//
//	if err := download.MNIST(ctx, "mnist", download.Mirror, nil); err != nil {
//		return err
//	}
//	train, err := data.MNIST("mnist", true)
//
// It stands apart from package data because it needs net/http, whose start costs a process 0.4 ms where it was measured, a quarter of a worker's, and
// 5 MB of binary.
//
// The trap: a file of the right name with other contents is replaced.
package download
