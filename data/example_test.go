package data_test

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/data"
)

func ExampleLoader() {
	digits := data.Digits(100, 1)
	loader := data.NewLoader(digits, data.Options{BatchSize: 64, Shuffle: true, Seed: 1,
		Transform: data.Compose(data.ToTensor, data.Normalize(data.MNISTMean, data.MNISTStd))})
	defer loader.Close()
	for batch, err := range loader.Batches(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(batch[0].DType(), batch[0].Shape(), batch[1].DType(), batch[1].Shape())
	}
	// Output:
	// float32 [64 1 28 28] int64 [64]
	// float32 [36 1 28 28] int64 [36]
}
