//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// An indexDataset is a data set of N samples; each is a tensor filled with its index. Its
// readers record each read in the ledger at Path.
type indexDataset struct {
	N    int
	Path string
}

func init() { codec.RegisterType[*indexDataset]("torture.book") }

// Len returns the number of samples.
func (b *indexDataset) Len() int { return b.N }

// Get records the read of sample i and returns a tensor filled with i, which the caller must
// close.
func (b *indexDataset) Get(_ context.Context, i int) (data.Sample, error) {
	p, err := openPen(b.Path)
	if err != nil {
		return nil, err
	}
	p.write(begins, uint64(i))
	time.Sleep(time.Duration(i%300) * time.Microsecond)
	return data.Sample{tensor.Full(tensor.Int64, float64(i), 50)}, nil
}

// loaderStorm reads epochs while the worker processes of the loader are killed. Each epoch must
// yield each sample once and in order; otherwise it reports a violation to s.
func loaderStorm(s *storm) error { return epochStorm(s, &indexDataset{samples, s.path}) }

// samples is the number of samples in an epoch, and batch the batch size.
const samples, batch = 120, 5

func epochStorm(s *storm, set data.Dataset) (err error) {
	l := data.NewLoader(set, data.Options{BatchSize: batch, Workers: 4, Kind: data.Processes,
		Persistent: s.seed%2 == 0})
	defer func() { err = errors.Join(err, l.Close()) }()
	s.spares = true // like a pool, a loader fails if no worker is left
	s.pace = 24     // it also gives up a sample after the deaths of three workers
	over := make(chan struct{})
	go func() {
		defer close(over)
		if s.deaths > 0 {
			s.hunt()
		}
	}()
	done := false
	for epoch := 0; !done && s.ctx.Err() == nil; epoch++ {
		select {
		case <-over:
			done = true // then one more epoch without deaths
		default:
		}
		next := 0
		for b, err := range l.Epoch(s.ctx, epoch) {
			if err != nil {
				return fmt.Errorf("epoch %d, sample %d: %w", epoch, next, err)
			}
			for _, v := range tensor.Data[int64](b[0]) {
				if n := int(v); n != next/50 {
					s.wrong(&s.seen.Twice, 1, "epoch %d: sample %d comes where %d should", epoch, n, next/50)
				}
				next++
			}
			if err := b.Close(); err != nil {
				return err
			}
		}
		if next != samples*50 && s.ctx.Err() == nil {
			s.wrong(&s.seen.Lost, samples-next/50, "epoch %d: %d samples of %d", epoch, next/50, samples)
		}
	}
	if s.ctx.Err() != nil {
		s.wrong(&s.seen.Hangs, 1, "an epoch does not end")
	}
	return nil
}
