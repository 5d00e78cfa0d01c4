// Command counters updates an array in a manager from four processes. In Python, a[i] += 1 is two
// calls to the manager, and updates can be lost between them; here it is one call.
//
//	go run ./examples/counters
//
// It prints the elements and their sum.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/manager"
)

const processes, rounds, size = 4, 500, 3

var count = shoal.Register("count", func(ctx context.Context, rank int, a *manager.Array[int]) error {
	defer a.Close()
	for n := range rounds {
		if _, err := a.Add(ctx, n%size, rank+1); err != nil {
			return err
		}
	}
	return nil
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	m, err := manager.Start(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	a, err := manager.NewArray(ctx, m, make([]int, size)...)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := count.Spawn(ctx, processes, a); err != nil {
		return err
	}
	// Two elements change together, or not at all.
	err = m.Txn(ctx, func(tx context.Context) error {
		_, err1 := a.Add(tx, 0, -1000)
		_, err2 := a.Add(tx, 1, 1000)
		return errors.Join(err1, err2)
	})
	if err != nil {
		return err
	}
	all, err := a.All(ctx) // reads shared memory, without a call
	if err != nil {
		return err
	}
	sum := 0
	for _, v := range all {
		sum += v
	}
	fmt.Printf("%d processes added up to %d: %v\n", processes, sum, all)
	return nil
}
