package main

import (
	"context"
	"os"
)

// serveCommand implements shoal serve.
type serveCommand struct{}

// Run executes shoal-loader as a data host. This program does not link package net.
func (*serveCommand) Run(ctx context.Context) error {
	return execHelper(ctx, "shoal-loader", "serving data needs", os.Args[1:])
}
