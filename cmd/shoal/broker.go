package main

import (
	"context"
	"os"
)

// brokerCommand is shoal broker.
type brokerCommand struct{}

// Run has the program that is a broker run: this one does without package net, and is small.
func (*brokerCommand) Run(ctx context.Context) error {
	return handTo(ctx, "shoal-broker", "brokers need", os.Args[2:])
}
