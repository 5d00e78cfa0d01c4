package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/shoal-mp/shoal/dist"
	_ "github.com/shoal-mp/shoal/dist/mpi"
	"github.com/shoal-mp/shoal/tensor"
)

// rankCommand is one rank of the all-reduce measurement. Its arguments are the same as for
// testdata/allreduce.c.
type rankCommand struct {
	Args struct {
		Pairs []string `positional-arg-name:"bytes rounds"`
	} `positional-args:"yes"`
}

// Run performs the all-reduces. Rank 0 prints a line for each pair of size and rounds: the time
// of one all-reduce on the slowest rank in nanoseconds.
func (c *rankCommand) Run(ctx context.Context) (err error) {
	slog.SetLogLoggerLevel(slog.LevelWarn)
	g, err := dist.Init(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	for i := 0; i+1 < len(c.Args.Pairs); i += 2 {
		bytes, err := strconv.Atoi(c.Args.Pairs[i])
		if err != nil {
			return err
		}
		rounds, err := strconv.Atoi(c.Args.Pairs[i+1])
		if err != nil {
			return err
		}
		took, err := measureAllReduce(ctx, g, bytes, rounds)
		if err != nil {
			return err
		}
		if g.Rank() == 0 {
			fmt.Printf("%.0f\n", took)
		}
	}
	return nil
}

func measureAllReduce(ctx context.Context, g *dist.Group, bytes, rounds int) (float64, error) {
	x := tensor.New(tensor.Float32, bytes/4)
	loop := func(n int) error {
		for range n {
			if err := g.AllReduce(ctx, dist.Sum, x); err != nil {
				return err
			}
		}
		return nil
	}
	if err := loop(2 + rounds/10); err != nil {
		return 0, err
	}
	if err := g.Barrier(ctx); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := loop(rounds); err != nil {
		return 0, err
	}
	slowest := tensor.Full(tensor.Float64, float64(time.Since(begin).Nanoseconds())/float64(rounds), 1)
	err := g.AllReduce(ctx, dist.Max, slowest)
	return slowest.Item(), err
}
