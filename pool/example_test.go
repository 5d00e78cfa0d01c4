package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

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
