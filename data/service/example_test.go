package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/service"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// serve is what runs on each data host: the same data set, with the same options.
func serve() (h *service.Host, err error) {
	set := data.NewTensorDataset(tensor.Arange(tensor.Float32, 0, 12, 1))
	loader := data.NewLoader(set, data.Options{BatchSize: 4, Seed: 1, Workers: 2})
	return service.Listen(loader, "localhost:0", service.HostOptions{Key: []byte("16 random bytes."), Name: "twelve"})
}

// Two data hosts make the batches of one trainer.
func Example() {
	ctx := context.Background()
	a, err := serve()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	b, err := serve()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	l, err := service.Dial(ctx, service.Options{Key: []byte("16 random bytes.")}, a.Addr(), b.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	for batch, err := range l.Batches(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(tensor.Data[float32](batch[0]))
		batch.Close()
	}
	// Output:
	// [0 1 2 3]
	// [4 5 6 7]
	// [8 9 10 11]
}

// words is a Stream: its parts have every so many-th word.
type words []string

func (w words) Values(_ context.Context, p data.Part) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for i, word := range w {
			if p.Has(i) && !yield(word, nil) {
				return
			}
		}
	}
}

// A data host serves a Stream in two parts. Its trainers get a part each.
func ExampleDial_stream() {
	ctx, key := context.Background(), []byte("16 random bytes.")
	stream := data.StructuredStream(words{"many", "one", "processes", "set", "share", "of", "them", "tensors"})
	loader := data.NewStreamLoader(stream, data.Options{BatchSize: 2, Parts: 2})
	defer loader.Close()
	h, err := service.Listen(loader, "localhost:0", service.HostOptions{Key: key})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	for rank := range 2 {
		l, err := service.Dial(ctx, service.Options{Key: key, Rank: rank, World: 2}, h.Addr())
		if err != nil {
			fmt.Println(err)
			return
		}
		for batch, err := range service.BatchesOf[[]string](ctx, l) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(rank, batch)
		}
		l.Close()
	}
	// Output:
	// 0 [many processes]
	// 0 [share them]
	// 1 [one set]
	// 1 [of tensors]
}

// A data host prints its rates every ten seconds. What is in the cache is not made again for other
// trainers.
func ExampleListen() {
	set := data.NewTensorDataset(tensor.Arange(tensor.Float32, 0, 12, 1))
	loader := data.NewLoader(set, data.Options{BatchSize: 4, Workers: 2})
	h, err := service.Listen(loader, "localhost:0",
		service.HostOptions{Key: []byte("16 random bytes."), Cache: 1 << 30})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	ctx, cancel := context.WithCancel(context.Background()) // in a program, that of shoal.Main
	cancel()
	for last := h.Stats(); ; {
		select {
		case <-time.After(10 * time.Second):
			now := h.Stats()
			fmt.Println(now.Since(last))
			last = now
		case <-ctx.Done():
			fmt.Println(h.Stats().Batches, "batches")
			return
		}
	}
	// Output: 0 batches
}

// A data host that is wrong is named.
func ExampleHostError() {
	h, err := serve()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	_, err = service.Dial(context.Background(), service.Options{Key: []byte("a guess")}, h.Addr())
	var host *service.HostError
	fmt.Println(errors.As(err, &host) && host.Host == h.Addr(), errors.Is(err, ipc.ErrKey), host.Advice)
	// Output: true true give all data hosts and trainers the same key
}

// A trainer that was killed goes on from the State that it has written.
func ExampleLoader_Resume() {
	ctx := context.Background()
	h, err := serve()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	opts := service.Options{Key: []byte("16 random bytes.")}
	l, err := service.Dial(ctx, opts, h.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	for batch, err := range l.Batches(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		batch.Close()
		break
	}
	text, err := json.Marshal(l.State())
	fmt.Println(string(text), err)
	fmt.Println(l.Resume(l.State()))
	for batch, err := range l.Batches(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(tensor.Data[float32](batch[0]))
		batch.Close()
	}
	// Output:
	// {"seed":1,"epoch":0,"batches":1} <nil>
	// <nil>
	// [4 5 6 7]
	// [8 9 10 11]
}

// Batches of two neighbours are of one bucket: two trainers get sentences of similar lengths in
// each step.
func ExampleBuckets() {
	lengths := []int{3, 90, 4, 80, 5, 85, 2, 95}
	for _, batch := range service.Buckets(lengths, []int{50}, 2, 2, 1).Batches(0) {
		fmt.Println(lengths[batch[0]] > 50, lengths[batch[1]] > 50)
	}
	// Output:
	// true true
	// true true
	// false false
	// false false
}

// A loader here has the order, and the data hosts the samples.
func ExampleOpenDataset() {
	ctx := context.Background()
	h, err := serve()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	set, err := service.OpenDataset(ctx, service.Options{Key: []byte("16 random bytes.")}, h.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close()
	l := data.NewLoader(set, data.Options{BatchSize: 6})
	defer l.Close()
	for batch, err := range l.Batches(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(tensor.Data[float32](batch[0]))
		batch.Close()
	}
	// Output:
	// [0 1 2 3 4 5]
	// [6 7 8 9 10 11]
}
