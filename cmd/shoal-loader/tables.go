package main

import (
	"context"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/jsonl"
	"github.com/shoal-mp/shoal/data/parquet"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/torch"
)

func openNPY(_ context.Context, w torch.Worker) (data.Dataset, error) {
	var args struct {
		Paths any `torch:"paths"`
	}
	if err := w.Keywords(&args); err != nil {
		return nil, err
	}
	paths, err := files(args.Paths)
	if err != nil {
		return nil, err
	}
	return data.OpenNPY(paths...)
}

// A table is what the options of a table say.
type table struct {
	Paths   any `torch:"paths"`
	Columns any `torch:"columns"`
}

// tableOf reads the options of a table.
func tableOf(w torch.Worker) (paths []string, wanted row.Columns, err error) {
	var args table
	if err := w.Keywords(&args); err != nil {
		return nil, nil, err
	}
	if paths, err = files(args.Paths); err != nil {
		return nil, nil, err
	}
	wanted, err = columns(args.Columns)
	return paths, wanted, err
}

func openJSONL(_ context.Context, w torch.Worker) (data.Dataset, error) {
	paths, wanted, err := tableOf(w)
	if err != nil {
		return nil, err
	}
	return jsonl.Open(jsonl.Options{Columns: wanted}, paths...)
}

func openParquet(_ context.Context, w torch.Worker) (data.Dataset, error) {
	paths, wanted, err := tableOf(w)
	if err != nil {
		return nil, err
	}
	return parquet.Open(parquet.Options{Columns: wanted}, paths...)
}
