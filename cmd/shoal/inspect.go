package main

import (
	"context"
	"os"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/files"
)

// inspectCommand implements shoal inspect.
type inspectCommand struct {
	Args struct {
		File string `positional-arg-name:"FILE" description:"A file of tensors. Its extension selects the format: .safetensors (or .safetensors.index.json), .pt .pth .bin .ckpt, .npy, .npz, .h5 .hdf5, .msgpack .mpk"`
	} `positional-args:"yes" required:"yes"`
	JSON     bool  `long:"json" description:"Print one JSON object."`
	MaxBytes int64 `long:"max-bytes" value-name:"N" description:"Maximum memory for the tensors. By default limited by the file's size and the memory available to this process."`
}

// Run prints the contents of the file on standard output.
func (c *inspectCommand) Run(ctx context.Context) error {
	return files.Inspect(ctx, os.Stdout, os.Stderr, c.Args.File, c.JSON, files.Options{MaxBytes: c.MaxBytes})
}
