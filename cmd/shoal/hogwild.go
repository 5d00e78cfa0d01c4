package main

import (
	"context"

	"github.com/shoal-mp/shoal/cmd/internal/beside"
	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
)

// hogwildCommand implements shoal hogwild.
type hogwildCommand struct{ hogwild.Command }

// Run trains and tests the network. It executes the GPU helper if a GPU is requested, and also for
// the device auto if the helper is installed.
func (c *hogwildCommand) Run(ctx context.Context) error {
	_, missing := beside.Find(accel)
	if hogwild.OnGPU(c.Device) || c.Device == "auto" && missing == nil {
		return execAccel(ctx)
	}
	o := c.Options()
	o.NoGPU = missing
	return hogwild.Run(ctx, o)
}
