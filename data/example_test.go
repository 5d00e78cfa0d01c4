package data_test

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/tensor"
)

func ExampleLoader() {
	digits := datasets.Digits(100, 1)
	loader := data.NewLoader(digits, data.Options{BatchSize: 64, Shuffle: true, Seed: 1,
		Transform: data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd))})
	defer loader.Close()
	for batch, err := range loader.Batches(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(batch[0].DType(), batch[0].Shape(), batch[1].DType(), batch[1].Shape())
		batch.Close()
	}
	// Output:
	// float32 [64 1 28 28] int64 [64]
	// float32 [36 1 28 28] int64 [36]
}

// Sentences of different lengths, with a label and a text: batches have a tensor, a mask, and a
// list of strings.
func ExampleBatchesOf() {
	type sentence struct {
		IDs   []int64 `data:"ids"`
		Label int     `data:"label"`
		Text  string  `data:"text"`
	}
	all := []sentence{{[]int64{7, 8, 9}, 1, "a longer one"}, {[]int64{4}, 0, "short"}}
	set := data.Structs(len(all), func(_ context.Context, i int) (sentence, error) { return all[i], nil })
	loader := data.NewLoader(set, data.Options{BatchSize: 2,
		Ragged: data.Ragged{"ids": data.Pad{Value: -1, Mask: "mask"}}})
	defer loader.Close()
	type batch struct {
		IDs   *tensor.Tensor `data:"ids"`
		Mask  *tensor.Tensor `data:"mask"`
		Label *tensor.Tensor `data:"label"`
		Text  []string       `data:"text"`
	}
	for b, err := range data.BatchesOf[batch](context.Background(), loader) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(b.IDs)
		fmt.Println(b.Mask)
		fmt.Printf("%v %q\n", b.Label, b.Text)
	}
	// Output:
	// tensor([[ 7,  8,  9],
	//         [ 4, -1, -1]])
	// tensor([[ True,  True,  True],
	//         [ True, False, False]])
	// tensor([1, 0]) ["a longer one" "short"]
}

// Rows of different lengths, one after the other.
func ExampleNested() {
	set := data.Structs(3, func(_ context.Context, i int) ([]float32, error) { return make([]float32, i), nil })
	loader := data.NewLoader(set, data.Options{BatchSize: 3, Ragged: data.Ragged{"": data.Nested{}}})
	defer loader.Close()
	for rows, err := range data.BatchesOf[data.NestedRows](context.Background(), loader) {
		fmt.Println(rows.Values, rows.Offsets, err)
	}
	// Output: tensor([0., 0., 0.]) tensor([0, 0, 1, 3]) <nil>
}
