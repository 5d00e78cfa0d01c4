package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

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
