package main

import (
	"context"
	"log/slog"
	"os"
	"slices"

	"github.com/shoal-mp/shoal/cmd/internal/bench"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/observe"
)

// benchCommand implements shoal bench.
type benchCommand struct {
	Suites struct {
		Names []string `positional-arg-name:"suite" description:"core (default), first, sizes, sync, floors, idle, kernels, ops, steps, dtypes, train, hogwild, ways, dist, loader, files, scale, observe, torchpeer, torchloader_light, torchloader_jpeg or python; and, only on their own, cuda and cuda_ops (run by shoal-accel) and cluster (run by shoal-cluster)"`
	} `positional-args:"yes"`
	All     bool   `long:"all" description:"Run every suite."`
	JSON    bool   `long:"json" description:"Print one JSON object per line."`
	Against string `long:"against" value-name:"torch" description:"Also measure PyTorch with the same work, in alternation."`
	Python  string `long:"python" default:"python3" value-name:"PROGRAM" description:"The Python interpreter with PyTorch."`
	Quick   bool   `long:"quick" description:"Run every row once, briefly: checks that everything runs; the values are meaningless."`
}

// Run runs the selected benchmark suites and prints their rows on standard output. The suites for
// GPUs and clusters are run by helper programs.
func (c *benchCommand) Run(ctx context.Context) error {
	if slices.Contains(c.Suites.Names, "cuda") || slices.Contains(c.Suites.Names, "cuda_ops") {
		return execAccel(ctx)
	}
	if slices.Contains(c.Suites.Names, "cluster") {
		return execHelper(ctx, cluster, "the cluster suite needs", os.Args[1:])
	}
	slog.SetLogLoggerLevel(slog.LevelError) // some rows oversubscribe the processors on purpose
	return bench.Run(ctx, bench.Options{
		Suites: c.Suites.Names, More: []bench.Suite{observe.Suite}, All: c.All, Quick: c.Quick,
		Against: c.Against, Python: c.Python,
		Out: os.Stdout, JSON: c.JSON, Log: os.Stderr,
	})
}
