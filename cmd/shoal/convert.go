package main

import (
	"context"
	"os"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/files"
)

// convertCommand is shoal convert.
type convertCommand struct {
	Args struct {
		From string `positional-arg-name:"FROM" description:"A file of tensors. The end of its name says the format: .safetensors (or .safetensors.index.json), .pt .pth .bin .ckpt, .npy, .npz, .h5 .hdf5, .msgpack .mpk"`
		To   string `positional-arg-name:"TO" description:"The file to write, in any of these formats."`
	} `positional-args:"yes" required:"yes"`
}

// Run says on standard output what was written.
func (c *convertCommand) Run(ctx context.Context) error {
	return files.Convert(ctx, os.Stdout, os.Stderr, c.Args.From, c.Args.To)
}
