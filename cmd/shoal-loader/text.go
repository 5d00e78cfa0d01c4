package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/jsonl"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/data/tokens"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// A text holds the options of tokenised text.
type text struct {
	Path       string `torch:"path"`
	Length     int    `torch:"length"`
	Stride     int    `torch:"stride"`
	DType      any    `torch:"dtype"`
	Vocabulary int    `torch:"vocabulary"`
	Column     string `torch:"column"`
	Pad        int64  `torch:"pad"`
}

func openTokens(_ context.Context, w torch.Worker) (data.Dataset, error) {
	var args text
	if err := storeOptions(w, &args); err != nil {
		return nil, err
	}
	if args.Path == "" || args.Length < 1 {
		return nil, fmt.Errorf("%w path and length: got %q and %d, want a path and a length of at least 1",
			errOption, args.Path, args.Length)
	}
	if slices.ContainsFunc([]string{".jsonl", ".jsonl.gz", ".jsonl.zst"},
		func(end string) bool { return strings.HasSuffix(args.Path, end) }) {
		return openLines(args)
	}
	o := tokens.Options{Length: args.Length, Stride: args.Stride, Vocabulary: args.Vocabulary}
	if args.DType != nil {
		var err error
		if o.DType, err = dtype(args.DType); err != nil {
			return nil, err
		}
	}
	return tokens.Open(args.Path, o)
}

// lines is a data set of token lists, one for each JSON line. A sample is a window of fixed length
// and the number of tokens in it that come from the line; the rest is padding.
type lines struct {
	set data.DatasetCloser
	text
}

// Len returns the number of lines that are not blank.
func (l lines) Len() int { return l.set.Len() }

// Close closes the file.
func (l lines) Close() error { return l.set.Close() }

func openLines(o text) (data.Dataset, error) {
	if o.Stride != 0 || o.DType != nil {
		return nil, fmt.Errorf("%w stride and dtype do not apply to JSON lines", errOption)
	}
	var wanted []row.Column
	if o.Column != "" {
		wanted = []row.Column{{Name: o.Column}}
	}
	set, err := jsonl.Open(jsonl.Options{Columns: wanted}, o.Path)
	if err != nil {
		return nil, err
	}
	return lines{set, o}, nil
}

var errTokens = errors.New("not a list of tokens")

// Get returns an int64 tensor of shape (length) and the number of its tokens. A longer line is
// truncated, and a shorter one is padded. It returns an error that wraps [tokens.ErrVocabulary] if
// a token is out of range.
func (l lines) Get(ctx context.Context, i int) (data.Sample, error) {
	v, err := data.Value(ctx, l.set, i)
	if err != nil {
		return nil, err
	}
	if row, ok := v.(map[string]any); ok {
		v = row[l.Column]
	}
	t, ok := v.(*tensor.Tensor)
	if !ok || t.Dims() != 1 || t.DType() != tensor.Int64 && t.Numel() > 0 {
		return nil, fmt.Errorf("non-blank line %d of %s: %w: set column to the name of the list", i+1,
			l.Path, errTokens)
	}
	window := make([]int64, l.Length)
	n := 0
	if t.Numel() > 0 {
		n = copy(window, tensor.Data[int64](t))
	}
	for k, token := range window[:n] {
		if l.Vocabulary > 0 && (token < 0 || token >= int64(l.Vocabulary)) {
			return nil, fmt.Errorf("non-blank line %d of %s: %w: token %d is %d, want at least 0 and less than %d",
				i+1, l.Path,
				tokens.ErrVocabulary, k, token, l.Vocabulary)
		}
	}
	for k := n; k < len(window); k++ {
		window[k] = l.Pad
	}
	return data.Sample{tensor.FromSlice(window, len(window)), tensor.FromSlice([]int64{int64(n)})}, nil
}
