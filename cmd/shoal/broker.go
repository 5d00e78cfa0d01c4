package main

import (
	"context"
	"os"
)

// brokerCommand implements shoal broker.
type brokerCommand struct{}

// Run executes shoal-broker. This program stays small and does not link package net.
func (*brokerCommand) Run(ctx context.Context) error {
	return execHelper(ctx, "shoal-broker", "the broker needs", os.Args[2:])
}
