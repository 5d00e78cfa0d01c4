// Command progress shows results as they arrive: a pool processes chunks of ten, and the program
// reports the progress whenever no result has arrived for a while, as with Python's
// imap_unordered(f, xs, 10).next(timeout).
//
//	go run ./examples/progress
//
// It prints the number of results and the longest Collatz sequence.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
)

// A function that a worker runs is a package-level variable.
var collatz = pool.Register("collatz", func(_ context.Context, n int) (steps int, err error) {
	for ; n > 1; steps++ {
		if n%2 == 0 {
			n /= 2
		} else {
			n = 3*n + 1
		}
	}
	return steps, nil
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	p, err := pool.New(ctx, pool.Options{Workers: 2})
	if err != nil {
		return err
	}
	defer p.Close()
	numbers := make([]int, 1000)
	for i := range numbers {
		numbers[i] = i + 1
	}
	results := collatz.ChunkSize(10).ImapUnorderedAsync(p, slices.Values(numbers))
	defer results.Close()
	done, longest := 0, 0
	for {
		steps, err := nextResult(ctx, results)
		switch {
		case errors.Is(err, pool.ErrNotReady) && ctx.Err() == nil:
			fmt.Fprintf(os.Stderr, "%d of %d so far\n", done, len(numbers))
		case err == io.EOF:
			fmt.Printf("%d numbers, at most %d steps\n", done, longest)
			return nil
		case err != nil:
			return err
		default:
			done, longest = done+1, max(longest, steps)
		}
	}
}

// nextResult waits at most 100 ms. A result that misses the deadline is returned by a later call.
func nextResult(ctx context.Context, results *pool.IMap[int]) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	return results.Next(ctx)
}
