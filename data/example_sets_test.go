package data_test

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

// numbersFrom is a data set of n samples: first, first+1, …
func numbersFrom(first, n int) *data.TensorDataset {
	x := tensor.New(tensor.Int64, n)
	for i := range n {
		tensor.SetAt(x, int64(first+i), i)
	}
	return data.NewTensorDataset(x)
}

// show prints the first field of each batch.
func show(set data.Dataset, opts data.Options) {
	loader := data.NewLoader(set, opts)
	defer loader.Close()
	for batch, err := range loader.Batches(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(batch[0])
	}
}

// A batch's memory is used again as soon as the batch is closed.
func ExampleBatch_Close() {
	loader := data.NewLoader(numbersFrom(0, 4), data.Options{BatchSize: 2})
	defer loader.Close()
	var kept []*tensor.Tensor
	for batch, err := range loader.Batches(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		kept = append(kept, batch[0].Clone()) // what is used later is a copy
		if err := batch.Close(); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(kept)
	// Output: [tensor([0, 1]) tensor([2, 3])]
}

// Rows of tensors that have the same first dimension are samples.
func ExampleTensorDataset() {
	images, labels := tensor.New(tensor.Uint8, 3, 28, 28), tensor.FromSlice([]int64{7, 2, 1}, 3)
	set := data.NewTensorDataset(images, labels)
	defer set.Close()
	last := set.Narrow(2, 1) // a view
	defer last.Close()
	sample, err := last.Get(context.Background(), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Len(), sample[0].Shape(), sample[1])
	// Output: 3 [28 28] tensor(1)
}

func ExampleNewConcatDataset() {
	set := data.NewConcatDataset(numbersFrom(0, 3), numbersFrom(10, 2))
	defer set.Close()
	show(set, data.Options{BatchSize: 4})
	// Output:
	// tensor([ 0,  1,  2, 10])
	// tensor([11])
}

func ExampleNewStackDataset() {
	set := data.NewStackDataset(numbersFrom(0, 3), numbersFrom(10, 3))
	defer set.Close()
	sample, err := set.Get(context.Background(), 2)
	fmt.Println(sample, err)
	// Output: [tensor(2) tensor(12)] <nil>
}

func ExampleNewSubset() {
	all := numbersFrom(0, 10)
	defer all.Close() // its subsets do not
	show(data.NewSubset(all, []int{1, 3, 5}), data.Options{BatchSize: 3})
	parts := data.RandomSplit(all, []float64{0.8, 0.2}, 1)
	fmt.Println(parts[0].Len(), parts[1].Len())
	// Output:
	// tensor([1, 3, 5])
	// 8 2
}

// countdown is a Stream: each part deals out every Count-th number.
type countdown struct{ From int }

func (c countdown) Samples(_ context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		for i := range c.From {
			if p.Has(i) && !yield(data.Sample{tensor.Scalar(tensor.Int64, float64(c.From-i))}, nil) {
				return
			}
		}
	}
}

// A Stream has no length; the Loader reads it in parts, which together are the whole.
func ExampleNewChainDataset() {
	loader := data.NewStreamLoader(data.NewChainDataset(countdown{3}, countdown{2}),
		data.Options{BatchSize: 5, Parts: 1})
	defer loader.Close()
	for batch, err := range loader.Batches(context.Background()) {
		fmt.Println(batch[0], err)
	}
	// Output: tensor([3, 2, 1, 2, 1]) <nil>
}

func ExamplePart() {
	for i := range 6 {
		if (data.Part{Index: 1, Count: 3}).Has(i) {
			fmt.Println(i)
		}
	}
	// Output:
	// 1
	// 4
}

// words is a ValueDataset: samples of any structure.
type words []string

func (w words) Len() int { return len(w) }
func (w words) Value(_ context.Context, i int) (v any, err error) {
	return map[string]any{"text": w[i]}, nil
}

func ExampleStructured() {
	set := data.Structured(words{"one", "two"})
	value, err := data.Value(context.Background(), set, 1)
	fmt.Println(value, err)
	// Output: map[text:two] <nil>
}

// letters is a ValueStream.
type letters string

func (l letters) Values(_ context.Context, p data.Part) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for i, r := range l {
			if p.Has(i) && !yield(string(r), nil) {
				return
			}
		}
	}
}

func ExampleStructuredStream() {
	loader := data.NewStreamLoader(data.StructuredStream(letters("ab")), data.Options{BatchSize: 2, Parts: 1})
	defer loader.Close()
	for batch, err := range data.BatchesOf[[]string](context.Background(), loader) {
		fmt.Println(batch, err)
	}
	// Output: [a b] <nil>
}

// largest makes a batch of the largest sample alone.
var largest = data.RegisterCollate("example.largest",
	func(_ context.Context, samples []data.Sample) (data.Batch, error) {
		most := samples[0][0]
		for _, s := range samples {
			if s[0].Item() > most.Item() {
				most = s[0]
			}
		}
		return data.Batch{most.Clone()}, nil
	})

// A Collate is registered, so that it goes to workers that are processes.
func ExampleCollate() {
	show(numbersFrom(0, 6), data.Options{BatchSize: 3, Collate: largest})
	// Output:
	// tensor(2)
	// tensor(5)
}

// A run that was interrupted goes on with the batch that would have come next.
func ExampleState() {
	opts := data.Options{BatchSize: 2, Shuffle: true, Seed: 3}
	first := data.NewLoader(numbersFrom(0, 8), opts)
	defer first.Close()
	for batch, err := range first.Batches(context.Background()) {
		fmt.Println(batch[0], err)
		break
	}
	second := data.NewLoader(numbersFrom(0, 8), opts) // perhaps in another process, days later
	defer second.Close()
	if err := second.Resume(first.State()); err != nil {
		fmt.Println(err)
		return
	}
	for batch, err := range second.Batches(context.Background()) {
		fmt.Println(batch[0], err)
	}
	// Output:
	// tensor([7, 0]) <nil>
	// tensor([2, 6]) <nil>
	// tensor([4, 1]) <nil>
	// tensor([5, 3]) <nil>
}

func ExampleStats() {
	loader := data.NewLoader(numbersFrom(0, 8), data.Options{BatchSize: 2})
	defer loader.Close()
	for _, err := range loader.Batches(context.Background()) {
		if err != nil {
			fmt.Println(err)
		}
	}
	stats := loader.Stats()
	fmt.Println(stats.Batches, stats.Samples, stats.SamplesPerSecond() > 0)
	// Output: 4 8 true
}

func ExampleTransformFunc() {
	negative := data.TransformFunc(func(dst, src *tensor.Tensor) *tensor.Tensor {
		if dst == nil { // the first sample of a batch: its result says what the others look like
			return tensor.Neg(src)
		}
		return dst.CopyFrom(src).NegInPlace()
	})
	show(numbersFrom(1, 2), data.Options{BatchSize: 2, Transform: negative})
	// Output: tensor([-1, -2])
}

// broken fails at one sample.
type broken struct{}

func (broken) Len() int { return 4 }
func (broken) Get(_ context.Context, i int) (data.Sample, error) {
	if i == 2 {
		return nil, errors.New("the disk is full of sand")
	}
	return data.Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil
}

func ExampleSampleError() {
	loader := data.NewLoader(broken{}, data.Options{BatchSize: 2})
	defer loader.Close()
	for batch, err := range loader.Batches(context.Background()) {
		if bad, ok := errors.AsType[*data.SampleError](err); ok {
			fmt.Println("sample", bad.Index, bad.Err)
			return
		}
		fmt.Println(batch[0])
	}
	// Output:
	// tensor([0, 1])
	// sample 2 the disk is full of sand
}

func ExampleWorkerInfo() {
	set := data.Structs(1, func(ctx context.Context, i int) (int, error) {
		info, ok := data.WorkerInfo(ctx)
		fmt.Println(info.ID, "of", info.Workers, "in epoch", info.Epoch, ok)
		return i, nil
	})
	loader := data.NewLoader(set, data.Options{Workers: 1})
	defer loader.Close()
	for _, err := range loader.Batches(context.Background()) {
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output: 0 of 1 in epoch 0 true
}

// squares is a Dataset of numbers and their squares.
type squares int

func (n squares) Len() int { return int(n) }

func (n squares) Get(_ context.Context, i int) (data.Sample, error) {
	return data.Sample{tensor.Scalar(tensor.Int64, float64(i)), tensor.Scalar(tensor.Int64, float64(i*i))}, nil
}

// A batch has one tensor for each field of its samples.
func ExampleSample() {
	loader := data.NewLoader(squares(4), data.Options{BatchSize: 4})
	defer loader.Close()
	for batch, err := range loader.Batches(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(batch[0], batch[1])
		batch.Close()
	}
	// Output: tensor([0, 1, 2, 3]) tensor([0, 1, 4, 9])
}

// reversed is a Dataset of another one. It can be sent to worker processes.
type reversed struct{ Of data.Any[data.Dataset] }

func (r reversed) Len() int { return r.Of.Value.Len() }

func (r reversed) Get(ctx context.Context, i int) (data.Sample, error) {
	return r.Of.Value.Get(ctx, r.Len()-1-i)
}

func init() {
	wire.RegisterType[squares]("example.squares")
	wire.RegisterType[reversed]("example.reversed")
}

func ExampleAny() {
	set := reversed{Of: data.Any[data.Dataset]{Value: squares(4)}}
	loader := data.NewLoader(set, data.Options{BatchSize: 4, Workers: 1, Kind: data.Processes})
	defer loader.Close()
	for batch, err := range loader.Batches(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(batch[0], batch[1])
		batch.Close()
	}
	// Output: tensor([3, 2, 1, 0]) tensor([9, 4, 1, 0])
}
