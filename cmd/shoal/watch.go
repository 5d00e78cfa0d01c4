package main

import (
	"context"
	"os"
)

// watchCommand is shoal watch.
type watchCommand struct{}

// Run has the program that serves the page run: this one does without package net.
func (*watchCommand) Run(ctx context.Context) error {
	return handTo(ctx, "shoal-watch", "pages need", os.Args[2:])
}
