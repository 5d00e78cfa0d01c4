package main

import (
	"context"
	"os"
)

// serveCommand is shoal serve.
type serveCommand struct{}

// Run has the program that reads data sets serve one: this one does without package net.
func (*serveCommand) Run(ctx context.Context) error {
	return handTo(ctx, "shoal-loader", "data hosts need", os.Args[1:])
}
