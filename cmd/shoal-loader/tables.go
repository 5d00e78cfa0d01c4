package main

import (
	"context"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/jsonl"
	"github.com/shoal-mp/shoal/data/parquet"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/torch"
)

func openNPY(_ context.Context, w torch.Worker) (data.Dataset, error) {
	var args struct {
		Paths any `torch:"paths"`
	}
	if err := take(w, &args); err != nil {
		return nil, err
	}
	paths, err := files(args.Paths)
	if err != nil {
		return nil, err
	}
	return datasets.OpenNPY(paths...)
}

// A table is what the options of a table say.
type table struct {
	Paths   any `torch:"paths"`
	Columns any `torch:"columns"`
	Pad     any `torch:"pad"`
}

// A tableOpener opens files of a kind.
type tableOpener func(wanted []row.Column, paths []string) (data.DatasetCloser, error)

// openTable opens files by the options of a table.
func openTable(w torch.Worker, open tableOpener) (data.Dataset, error) {
	var args table
	if err := take(w, &args); err != nil {
		return nil, err
	}
	paths, err := files(args.Paths)
	if err != nil {
		return nil, err
	}
	wanted, err := columns(args.Columns)
	if err != nil {
		return nil, err
	}
	how, err := ragged(args.Pad)
	if err != nil {
		return nil, err
	}
	set, err := open(wanted, paths)
	if err != nil || how == nil {
		return set, err
	}
	return padded{set, how}, nil
}

func openJSONL(_ context.Context, w torch.Worker) (data.Dataset, error) {
	return openTable(w, func(wanted []row.Column, paths []string) (data.DatasetCloser, error) {
		return jsonl.Open(jsonl.Options{Columns: wanted}, paths...)
	})
}

func openParquet(_ context.Context, w torch.Worker) (data.Dataset, error) {
	return openTable(w, func(wanted []row.Column, paths []string) (data.DatasetCloser, error) {
		return parquet.Open(parquet.Options{Columns: wanted}, paths...)
	})
}
