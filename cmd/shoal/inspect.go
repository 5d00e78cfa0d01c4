package main

import (
	"context"
	"os"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/files"
)

// inspectCommand is shoal inspect.
type inspectCommand struct {
	Args struct {
		File string `positional-arg-name:"FILE" description:"A file of tensors. The end of its name says the format: .safetensors (or .safetensors.index.json), .pt .pth .bin .ckpt, .npy, .npz, .h5 .hdf5, .msgpack .mpk"`
	} `positional-args:"yes" required:"yes"`
	JSON bool `long:"json" description:"One JSON object, for programs."`
}

// Run prints to standard output.
func (c *inspectCommand) Run(ctx context.Context) error {
	return files.Inspect(ctx, os.Stdout, os.Stderr, c.Args.File, c.JSON)
}
