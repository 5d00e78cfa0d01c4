package main

import (
	"context"
	"os"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/files"
)

// convertCommand implements shoal convert.
type convertCommand struct {
	Args struct {
		From string `positional-arg-name:"FROM" description:"A file of tensors. Its extension selects the format: .safetensors (or .safetensors.index.json), .pt .pth .bin .ckpt, .npy, .npz, .h5 .hdf5, .msgpack .mpk"`
		To   string `positional-arg-name:"TO" description:"The file to write, in any of these formats."`
	} `positional-args:"yes" required:"yes"`
	Strict   bool  `long:"strict" description:"Fail without writing if anything would be omitted."`
	MaxBytes int64 `long:"max-bytes" value-name:"N" description:"Maximum memory for the tensors. By default limited by the file's size and the memory available to this process."`
}

// Run converts the file and prints the result on standard output.
func (c *convertCommand) Run(ctx context.Context) error {
	return files.Convert(ctx, os.Stdout, os.Stderr, c.Args.From, c.Args.To,
		files.Options{MaxBytes: c.MaxBytes, Strict: c.Strict})
}
