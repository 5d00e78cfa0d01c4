package main

import (
	"context"
	"fmt"

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
	if err := storeOptions(w, &args); err != nil {
		return nil, err
	}
	paths, err := expandFiles(args.Paths)
	if err != nil {
		return nil, err
	}
	return datasets.OpenNPY(paths...)
}

// A table holds the options that all table formats share.
type table struct {
	Paths   any `torch:"paths"`
	Columns any `torch:"columns"`
	Pad     any `torch:"pad"`
}

// A tableOpener opens files of one table format.
type tableOpener func(wanted []row.Column, paths []string) (data.DatasetCloser, error)

// openTable opens table files with open. more points to structs with the options of one format;
// they are filled before open is called.
func openTable(w torch.Worker, open tableOpener, more ...any) (data.Dataset, error) {
	var args table
	if err := storeOptions(w, append([]any{&args}, more...)...); err != nil {
		return nil, err
	}
	paths, err := expandFiles(args.Paths)
	if err != nil {
		return nil, err
	}
	wanted, err := readColumns(args.Columns)
	if err != nil {
		return nil, err
	}
	how, err := readRagged(args.Pad)
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

// openCheckedJSONL is like openJSONL, and accepts the options skip and retries. It also decodes
// the first line, so that a file of another format and a missing column are errors before the
// first batch, unless such lines are skipped.
func openCheckedJSONL(ctx context.Context, w torch.Worker) (data.Dataset, error) {
	ds, err := tolerateErrors(openJSONL)(ctx, w)
	if _, tolerant := ds.(*torch.Tolerant); err != nil || tolerant || ds.Len() == 0 {
		return ds, err
	}
	if _, err := data.Value(ctx, ds, 0); err != nil {
		ds.(data.DatasetCloser).Close()
		return nil, err
	}
	return ds, nil
}

// A parquetMemory holds the limits, in bytes, for the rows that a worker keeps.
type parquetMemory struct {
	Cache int64 `torch:"cache"` // in memory
	Spill int64 `torch:"spill"` // in a temporary file
}

func openParquet(_ context.Context, w torch.Worker) (data.Dataset, error) {
	var m parquetMemory
	return openTable(w, func(wanted []row.Column, paths []string) (data.DatasetCloser, error) {
		if m.Cache < 0 {
			return nil, fmt.Errorf("%w cache: got %d bytes, want at least 0", errOption, m.Cache)
		}
		return parquet.Open(parquet.Options{Columns: wanted, Cache: int(m.Cache), Spill: m.Spill}, paths...)
	}, &m)
}
