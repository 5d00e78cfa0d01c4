package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// A record is a sample of the script with dicts.
type record struct {
	Image  *tensor.Tensor `data:"image"`
	Label  int            `data:"label"`
	Weight float64        `data:"weight"`
	Meta   struct {
		Name string `data:"name"`
		Rows [2]int `data:"rows"`
	} `data:"meta"`
}

// openRecords opens images.npy and labels.npy as a data set of records. The attribute root must
// name their directory.
func openRecords(_ context.Context, w torch.Worker) (data.Dataset, error) {
	var args struct {
		Root string `torch:"root"`
	}
	if err := w.Keywords(&args); err != nil {
		return nil, err
	}
	set, err := datasets.OpenNPY(filepath.Join(args.Root, "images.npy"), filepath.Join(args.Root, "labels.npy"))
	if err != nil {
		return nil, err
	}
	return data.Structs(set.Len(), func(ctx context.Context, i int) (r record, err error) {
		s, err := set.Get(ctx, i)
		if err != nil {
			return r, err
		}
		r.Image, r.Label, r.Weight = s[0].To(tensor.Float32), int(tensor.At[int64](s[1])), 1+float64(i%3)
		r.Meta.Name, r.Meta.Rows = fmt.Sprintf("digit %d", i), [2]int{brightRows(s[0]), 28}
		return r, nil
	}), nil
}

// brightRows counts the rows with a mean above 120 in an image of uint8 that is 28 pixels wide.
func brightRows(image *tensor.Tensor) (n int) {
	pixels := tensor.Data[uint8](image.Clone())
	for ; len(pixels) > 0; pixels = pixels[28:] {
		sum := 0
		for _, p := range pixels[:28] {
			sum += int(p)
		}
		if sum > 28*120 {
			n++
		}
	}
	return n
}
