package main

import (
	"context"
	"os"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/files"
)

// convertCommand is shoal convert.
type convertCommand struct {
	Args struct {
		From string `positional-arg-name:"FROM" description:"A file of tensors; its name says the format."`
		To   string `positional-arg-name:"TO" description:"The file to write; its name says the format."`
	} `positional-args:"yes" required:"yes"`
}

// run says on standard output what was written.
func (c *convertCommand) run(context.Context) error {
	return files.Convert(os.Stdout, os.Stderr, c.Args.From, c.Args.To)
}
