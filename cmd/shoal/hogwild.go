package main

import (
	"context"

	"github.com/shoal-mp/shoal/cmd/internal/beside"
	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
)

// hogwildCommand is shoal hogwild.
type hogwildCommand struct{ hogwild.Command }

// Run trains and tests. What needs a GPU is the affair of the program that loads the driver, and so
// is auto where that is at hand.
func (c *hogwildCommand) Run(ctx context.Context) error {
	_, missing := beside.Find(accel)
	if hogwild.OnGPU(c.Device) || c.Device == "auto" && missing == nil {
		return handOver(ctx)
	}
	o := c.Options()
	o.NoGPU = missing
	return hogwild.Run(ctx, o)
}
