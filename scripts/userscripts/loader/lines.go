package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// openLines yields the samples of this worker's shards. The attribute paths must list all
// shards, which are files of JSON lines. The first error is yielded and ends the samples.
func openLines(_ context.Context, w torch.Worker) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		var args struct {
			Paths []string `torch:"paths"`
		}
		if err := w.Keywords(&args); err != nil {
			yield(nil, err)
			return
		}
		for k := w.ID; k < len(args.Paths); k += w.Workers {
			for s, err := range linesOf(args.Paths[k]) {
				if !yield(s, err) || err != nil {
					return
				}
			}
		}
	}
}

// linesOf returns the samples of one shard, a file of JSON lines. It ends with the first error.
func linesOf(path string) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for n := 1; lines.Scan(); n++ {
			var row struct {
				X []float32
				Y float32
			}
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				yield(nil, fmt.Errorf("%s, line %d: %w", path, n, err))
				return
			}
			if !yield(data.Sample{tensor.FromSlice(row.X, len(row.X)), tensor.FromSlice([]float32{row.Y})}, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, fmt.Errorf("%s: %w", path, err))
		}
	}
}
