package main

import (
	"context"
	"os"
)

// watchCommand implements shoal watch.
type watchCommand struct{}

// Run executes shoal-watch. This program does not link package net.
func (*watchCommand) Run(ctx context.Context) error {
	return execHelper(ctx, "shoal-watch", "the page needs", os.Args[2:])
}
