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
		Names []string `positional-arg-name:"suite" description:"core (default), sizes, sync, floors, idle, kernels, ops, dtypes, train, hogwild, ways, dist, loader, files, scale, observe, torchpeer, torchloader_light or torchloader_jpeg; and by themselves cuda and cuda_ops, which the program shoal-accel has, and cluster, which shoal-cluster has"`
	} `positional-args:"yes"`
	All     bool   `long:"all" description:"Every suite."`
	JSON    bool   `long:"json" description:"One JSON object a line, for programs."`
	Against string `long:"against" value-name:"torch" description:"Do the same work with a real PyTorch as well, in turn."`
	Python  string `long:"python" default:"python3" value-name:"PROGRAM" description:"The interpreter that has it."`
	Quick   bool   `long:"quick" description:"Every row once and briefly: shows that all runs here, measures nothing."`
}

// Run runs the selected benchmark suites and prints their rows on standard output.
func (c *benchCommand) Run(ctx context.Context) error {
	if slices.Contains(c.Suites.Names, "cuda") || slices.Contains(c.Suites.Names, "cuda_ops") {
		return handOver(ctx)
	}
	if slices.Contains(c.Suites.Names, "cluster") {
		return handTo(ctx, cluster, "MPI libraries need", os.Args[1:])
	}
	slog.SetLogLoggerLevel(slog.LevelError) // some rows oversubscribe the processors on purpose
	return bench.Run(ctx, bench.Options{
		Suites: c.Suites.Names, More: []bench.Suite{observe.Suite}, All: c.All, Quick: c.Quick,
		Against: c.Against, Python: c.Python,
		Out: os.Stdout, JSON: c.JSON, Log: os.Stderr,
	})
}
