package dist_test

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
)

var addUp = shoal.Register("add up", func(ctx context.Context, rank int, g *dist.Group) error {
	defer g.Close()
	if err := g.Join(rank); err != nil {
		return err
	}
	t := tensor.Full(tensor.Float32, float64(rank+1), 2)
	if err := g.AllReduce(ctx, dist.Sum, t); err != nil {
		return err
	}
	fmt.Println(t) // the same bits in every rank
	return nil
})

func Example() {
	g, err := dist.NewGroup(2) // it travels, as a queue does
	if err != nil {
		panic(err)
	}
	defer g.Close()
	if err := addUp.Spawn(context.Background(), 2, g); err != nil {
		panic(err)
	}
	// Output:
	// tensor([3., 3.])
	// tensor([3., 3.])
}
