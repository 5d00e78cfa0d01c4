package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
)

var half = pool.Register("half", func(_ context.Context, x int) (int, error) {
	if x%2 != 0 {
		return 0, fmt.Errorf("%d is odd: %w", x, fs.ErrInvalid)
	}
	return x / 2, nil
})

func Example() {
	ctx := context.Background()
	p, err := pool.New(ctx, pool.Options{Workers: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(half.Map(ctx, p, []int{2, 4, 6}))
	for v, err := range half.Imap(ctx, p, slices.Values([]int{8, 9, 10})) {
		fmt.Println(v, errors.Is(err, fs.ErrInvalid))
	}
	// Output:
	// [1 2 3] <nil>
	// 4 false
	// 0 true
	// 5 false
}

// A result that does not come in time comes by a later call.
func ExampleFunc_ImapAsync() {
	p, err := pool.New(context.Background(), pool.Options{Workers: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	results := half.ChunkSize(2).ImapAsync(p, slices.Values([]int{2, 4, 6}))
	defer results.Close()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		v, err := results.Next(ctx)
		cancel()
		switch {
		case errors.Is(err, pool.ErrNotReady):
			continue // something else might be done meanwhile
		case err == io.EOF:
			return
		}
		fmt.Println(v, err)
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
}

type box struct{ Width, Height, Depth float64 }

var volume = pool.Register("volume", func(_ context.Context, b box) (float64, error) {
	return b.Width * b.Height * b.Depth, nil
})

// Three arguments or more are the fields of a struct, and starmap is Map.
func ExampleFunc2_threeArguments() {
	ctx := context.Background()
	p, err := pool.New(ctx, pool.Options{Workers: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(volume.Map(ctx, p, []box{{1, 2, 3}, {4, 5, 6}}))
	// Output: [6 120] <nil>
}

var scale = pool.Register2("scale", func(_ context.Context, x, by float64) (float64, error) { return by * x, nil })

// Pairs of arguments: starmap.
func ExampleFunc2() {
	ctx := context.Background()
	p, err := pool.New(ctx, pool.Options{Workers: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	pairs := func(yield func(x, by float64) bool) { _ = yield(1, 10) && yield(2, 100) }
	fmt.Println(scale.StarMap(ctx, p, pairs))
	fmt.Println(scale.Apply(ctx, p, 3, 2))
	// A Pair is what both are as one argument.
	fmt.Println(scale.Func.Map(ctx, p, []pool.Pair[float64, float64]{{First: 4, Second: 2}}))
	// Output:
	// [10 200] <nil>
	// 6 <nil>
	// [8] <nil>
}

var table []int // of each worker

var loadTable = pool.RegisterInit("load table", func(_ context.Context, n int) error {
	for i := range n {
		table = append(table, i*i)
	}
	return nil
})

var lookUp = pool.Register("look up", func(_ context.Context, i int) (int, error) { return table[i], nil })

// Each worker runs the initializer once, also one that replaces another.
func ExampleInitializer() {
	ctx := context.Background()
	p, err := pool.New(ctx, pool.Options{Workers: 2, Initializer: loadTable(10)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(lookUp.Map(ctx, p, []int{3, 9}))
	// Output: [9 81] <nil>
}

func ExampleResult() {
	ctx := context.Background()
	p, err := pool.New(ctx, pool.Options{Workers: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	r := half.ApplyAsync(p, 84)
	<-r.Done() // something else might be done meanwhile
	fmt.Println(r.Get(ctx))
	// Output: 42 <nil>
}

// What a function returns as its error names the input that it was given.
func ExampleTaskError() {
	ctx := context.Background()
	p, err := pool.New(ctx, pool.Options{Workers: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	_, err = half.Map(ctx, p, []int{2, 3})
	if task, ok := errors.AsType[*pool.TaskError](err); ok {
		fmt.Println(task.Func, task.Index, task.Err)
	}
	// Output: half 1 3 is odd: invalid argument
}

// A program says which values cost a worker.
func ExampleRetryEvent() {
	opts := pool.Options{Retries: 2}
	opts.OnRetry = func(e pool.RetryEvent) {
		fmt.Printf("value %d of %s, attempt %d: %v\n", e.Index, e.Func, e.Attempt, e.Err)
	}
	opts.OnRetry(pool.RetryEvent{Func: "decode", Index: 7, Attempt: 1, Err: shoal.ErrExited})
	// Output: value 7 of decode, attempt 1: shoal: process ended early
}
