package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"strings"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// reviews are texts as numbers of words, each of another length, and their labels.
type reviews []review

type review struct {
	Text  string `json:"text"`
	Label int64  `json:"label"`
}

func openReviews(_ context.Context, w torch.Worker) (data.Dataset, error) {
	var args struct {
		Path string `torch:"path"`
	}
	if err := w.Keywords(&args); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(args.Path)
	if err != nil {
		return nil, err
	}
	var rows reviews
	for line := range strings.Lines(string(text)) {
		var r review
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", args.Path, len(rows)+1, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// Len returns the number of texts.
func (r reviews) Len() int { return len(r) }

// Get returns one text, as a list of numbers of its words, and its label.
func (r reviews) Get(_ context.Context, i int) (data.Sample, error) {
	words := strings.Fields(r[i].Text)
	ids := make([]int64, len(words))
	for k, word := range words {
		ids[k] = int64(crc32.ChecksumIEEE([]byte(word))%5000) + 1
	}
	return data.Sample{tensor.FromSlice(ids, len(ids)), tensor.FromSlice([]int64{r[i].Label})}, nil
}
