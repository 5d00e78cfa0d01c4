// Loader is the Go side of the scripts beside it: PyTorch starts it as the workers of their
// DataLoaders.
package main

import (
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/torch"
)

func main() {
	torch.Child{
		Datasets: map[string]torch.OpenDataset{"digits": openDigits, "reviews": openReviews, "records": openRecords},
		Streams:  map[string]torch.OpenStream{"lines": openLines},
	}.Main()
	fmt.Fprintln(os.Stderr, "PyTorch starts this program; scripts/userscripts/run.py starts PyTorch")
	os.Exit(2)
}
