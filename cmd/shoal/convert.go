package main

import (
	"context"
	"os"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/files"
)

// convertCommand implements shoal convert.
type convertCommand struct {
	Args struct {
		From string `positional-arg-name:"FROM" description:"A file of tensors. The end of its name says the format: .safetensors (or .safetensors.index.json), .pt .pth .bin .ckpt, .npy, .npz, .h5 .hdf5, .msgpack .mpk"`
		To   string `positional-arg-name:"TO" description:"The file to write, in any of these formats."`
	} `positional-args:"yes" required:"yes"`
	Strict   bool  `long:"strict" description:"Fail, and write nothing, where anything would be left behind."`
	MaxBytes int64 `long:"max-bytes" value-name:"N" description:"How much memory the file may ask for. By default no more than it can fill and than this process may take."`
}

// Run converts the file and prints the result on standard output.
func (c *convertCommand) Run(ctx context.Context) error {
	return files.Convert(ctx, os.Stdout, os.Stderr, c.Args.From, c.Args.To,
		files.Options{MaxBytes: c.MaxBytes, Strict: c.Strict})
}
