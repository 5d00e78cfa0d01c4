package main

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// A picture holds the options for transforming an image.
type picture struct {
	Transform         image.Pipeline `torch:"transform"`
	Resize            any            `torch:"resize"` // shorter side or (H, W)
	Crop              any            `torch:"crop"`
	RandomCrop        any            `torch:"random_crop"`
	RandomResizedCrop any            `torch:"random_resized_crop"`
	Flip              float64        `torch:"flip"` // probability
	VerticalFlip      float64        `torch:"vertical_flip"`
	Mean              []float32      `torch:"mean"`
	Std               []float32      `torch:"std"`
	DType             any            `torch:"dtype"`
	Channels          int            `torch:"channels"`
}

// transformSteps returns the transforms in the order of the help text. It returns an error for
// invalid options, and for transform together with any other one. The error wraps
// [errOption].
func (p picture) transformSteps() (steps image.Pipeline, err error) {
	if p.Channels != 1 && p.Channels != 3 {
		return nil, fmt.Errorf("%w channels: got %d, want 1 or 3", errOption, p.Channels)
	}
	if p.Transform != nil {
		if p.Resize != nil || p.Crop != nil || p.RandomCrop != nil || p.RandomResizedCrop != nil ||
			p.Flip+p.VerticalFlip != 0 || p.Mean != nil || p.Std != nil || p.DType != nil {
			return nil, fmt.Errorf(
				"%w transform cannot be combined with other image options: include them in the transform", errOption)
		}
		return p.Transform, nil
	}
	if steps, err = p.sizeSteps(); err != nil {
		return nil, err
	}
	if p.Flip > 0 {
		steps = append(steps, image.RandomHorizontalFlip(p.Flip))
	}
	if p.VerticalFlip > 0 {
		steps = append(steps, image.RandomVerticalFlip(p.VerticalFlip))
	}
	if p.Flip < 0 || p.Flip > 1 || p.VerticalFlip < 0 || p.VerticalFlip > 1 {
		return nil, fmt.Errorf("%w flip and vertical_flip: got %v and %v, want probabilities from 0 to 1",
			errOption, p.Flip, p.VerticalFlip)
	}
	return p.appendConversion(steps)
}

// sizeSteps returns the transforms that resize or crop an image. The error wraps [errOption].
func (p picture) sizeSteps() (steps image.Pipeline, err error) {
	for _, s := range []struct {
		name   string
		option any
		size   func(string, any) (int, int, error)
		step   func(h, w int) image.Step
	}{
		{"resize", p.Resize, readSize, func(h, w int) image.Step { return image.Resize{H: h, W: w} }},
		{"crop", p.Crop, readSquare, func(h, w int) image.Step { return image.CenterCrop(h, w) }},
		{"random_crop", p.RandomCrop, readSquare, func(h, w int) image.Step { return image.RandomCrop{H: h, W: w} }},
		{"random_resized_crop", p.RandomResizedCrop, readSquare,
			func(h, w int) image.Step { return image.RandomResizedCrop{H: h, W: w} }},
	} {
		if s.option == nil {
			continue
		}
		h, w, err := s.size(s.name, s.option)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s.step(h, w))
	}
	return steps, nil
}

// appendConversion appends the conversion of pixels to float32 and the normalization, as ToTensor
// and Normalize in torchvision do. For the dtype uint8 it appends nothing.
func (p picture) appendConversion(steps image.Pipeline) (image.Pipeline, error) {
	dt := tensor.Float32
	if p.DType != nil {
		var err error
		if dt, err = dtype(p.DType); err != nil {
			return nil, err
		}
	}
	switch {
	case dt == tensor.Float32:
		if n, m := len(p.Mean), len(p.Std); n > 1 && n != p.Channels || m > 1 && m != p.Channels {
			return nil,
				fmt.Errorf("%w mean and std: got %d and %d numbers, want at most 1, or one for each of %d channels",
					errOption, n, m, p.Channels)
		}
		if slices.Contains(p.Std, 0) {
			return nil, fmt.Errorf("%w std: got %v, want numbers other than 0", errOption, p.Std)
		}
		return append(steps, image.Normalize{Mean: p.Mean, Std: p.Std, As: image.Divided}), nil
	case dt == tensor.Uint8 && p.Mean == nil && p.Std == nil:
		return steps, nil
	}
	return nil, fmt.Errorf("%w dtype of images: got %v, want float32, or uint8 without mean and std",
		errOption, dt)
}

func openImages(_ context.Context, w torch.Worker) (data.Dataset, error) {
	var args struct {
		Root string `torch:"root"`
	}
	p := picture{Channels: 3}
	if err := storeOptions(w, &args, &p); err != nil {
		return nil, err
	}
	if args.Root == "" {
		return nil, fmt.Errorf("%w root is missing, want the directory of the class directories", errOption)
	}
	steps, err := p.transformSteps()
	if err != nil {
		return nil, err
	}
	set, err := datasets.NewImageFolder(args.Root, steps...)
	if err != nil {
		return nil, err
	}
	set.Channels = p.Channels
	return set, nil
}

func openShards(ctx context.Context, w torch.Worker) iter.Seq2[data.Sample, error] {
	rest, skip, retries, err := splitTolerance(w.Args)
	if retries > 0 {
		err = fmt.Errorf("%w retries does not apply to shards, which are read once: leave it out", errOption)
	}
	w.Args = rest
	var s shardSet
	if err == nil {
		s, err = shardsOf(w)
	}
	if err != nil {
		return func(yield func(data.Sample, error) bool) { yield(nil, err) }
	}
	info, _ := data.WorkerInfo(ctx)
	info.Epoch += s.Epoch
	switch {
	case s.Seed != nil:
		info.Seed = uint64(*s.Seed)
	case s.World > 1:
		info.Seed = 0 // PyTorch's base seed differs by rank; orders must not
	}
	samples := s.Samples(data.WithSample(ctx, info, w.ID), s.part)
	if skip {
		return newSkips(w).withoutFailed(samples)
	}
	return samples
}

// A shardSet is a stream of shards and the part of it that a worker reads.
type shardSet struct {
	data.Stream
	part data.Part
	shardOptions
}

// shardOptions are the options that apply to shards only. The options of images apply as well.
type shardOptions struct {
	Paths   any    `torch:"paths"`
	Rank    int    `torch:"rank"`
	World   int    `torch:"world"`
	Shuffle any    `torch:"shuffle"`
	Seed    *int64 `torch:"seed"`
	Epoch   int    `torch:"epoch"`
	Equal   bool   `torch:"equal"`
}

// shuffleBuffer is the size of the shuffle buffer for shuffle=True, in records.
const shuffleBuffer = 1000

// shardsOf opens the shards for a worker. The options rank and world select the part of the
// stream. Errors about options wrap [errOption].
func shardsOf(w torch.Worker) (s shardSet, err error) {
	s.shardOptions = shardOptions{World: 1}
	p := picture{Channels: 3}
	if err := storeOptions(w, &s.shardOptions, &p); err != nil {
		return s, err
	}
	if s.Rank < 0 || s.Rank >= s.World {
		return s, fmt.Errorf("%w rank: got %d, want at least 0 and less than world %d", errOption, s.Rank, s.World)
	}
	buffer, err := readNumber("shuffle", s.Shuffle, shuffleBuffer)
	if err != nil {
		return s, err
	}
	paths, err := expandFiles(s.Paths)
	if err != nil {
		return s, err
	}
	steps, err := p.transformSteps()
	if err != nil {
		return s, err
	}
	s.part = data.Part{Index: s.Rank*w.Workers + w.ID, Count: s.World * w.Workers}
	if w.Trial { // the first sample of all
		s.part, buffer, s.Equal = data.Part{Count: 1}, 0, false
	}
	s.Stream = datasets.NewShardsWith(datasets.ImageDecoder{Channels: p.Channels, Steps: steps, Row: w.Row},
		datasets.ShardOptions{Shuffle: buffer, Equal: s.Equal}, paths...)
	return s, nil
}
