// Package download fetches the original files of data sets.
//
//	if err := download.MNIST(ctx, "mnist", download.Options{}); err != nil {
//		return err
//	}
//	train, err := datasets.MNIST("mnist", true)
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	fmt.Println(train.Len()) // 60000
//
// Start with [MNIST], and read its files with [datasets.MNIST].
//
// It is not part of package data because it imports net/http. A program with net/http is linked
// dynamically if a C compiler is found, which costs 0.8 ms at the start of each worker, and it is 6
// MB larger. The command shoal therefore runs a separate program, shoal-download.
//
// An existing file with the right name but other contents is replaced.
//
// [datasets.MNIST]: https://pkg.go.dev/github.com/shoal-mp/shoal/data/datasets#MNIST
package download
