package main

import (
	"context"
	"os"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/files"
)

// inspectCommand implements shoal inspect.
type inspectCommand struct {
	Args struct {
		File string `positional-arg-name:"FILE" description:"A file of tensors. The end of its name says the format: .safetensors (or .safetensors.index.json), .pt .pth .bin .ckpt, .npy, .npz, .h5 .hdf5, .msgpack .mpk"`
	} `positional-args:"yes" required:"yes"`
	JSON     bool  `long:"json" description:"One JSON object, for programs."`
	MaxBytes int64 `long:"max-bytes" value-name:"N" description:"How much memory the file may ask for. By default no more than it can fill and than this process may take."`
}

// Run prints the contents of the file on standard output.
func (c *inspectCommand) Run(ctx context.Context) error {
	return files.Inspect(ctx, os.Stdout, os.Stderr, c.Args.File, c.JSON, files.Options{MaxBytes: c.MaxBytes})
}
