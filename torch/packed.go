package torch

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// A PackedSequence is torch.nn.utils.rnn's: sequences of different lengths, sorted by length, step by step.
type PackedSequence struct {
	Data            *tensor.Tensor // the elements of all sequences, all first ones, then all second ones, …
	BatchSizes      *tensor.Tensor // int64, how many sequences have each step
	SortedIndices   *tensor.Tensor // int64, or nil where the sequences came sorted
	UnsortedIndices *tensor.Tensor // the other way round, or nil
}

var packedClass = named("torch.nn.utils.rnn.PackedSequence")

func (p *PackedSequence) parts() []**tensor.Tensor {
	return []**tensor.Tensor{&p.Data, &p.BatchSizes, &p.SortedIndices, &p.UnsortedIndices}
}

// Close closes its tensors.
func (p *PackedSequence) Close() (err error) {
	for _, t := range p.parts() {
		if *t != nil {
			err = errors.Join(err, (*t).Close())
		}
	}
	return err
}

// packed reads PackedSequence(data, batch_sizes, sorted_indices, unsorted_indices).
func (i *importer) packed(o *pickle.Object) (any, error) {
	p := new(PackedSequence)
	parts := p.parts()
	if len(o.Args) != len(parts) {
		return nil, protocolError("a PackedSequence has %d parts", len(o.Args))
	}
	for n, dst := range parts {
		v, err := i.Lift(o.Args[n])
		if err != nil {
			return nil, err
		}
		if t, ok := v.(*tensor.Tensor); ok {
			*dst = t
		} else if v != nil || n < 2 {
			return nil, protocolError("part %d of a PackedSequence is %T", n+1, v)
		}
	}
	return p, nil
}

func (e *exporter) packed(p *PackedSequence) (any, error) {
	if p == nil {
		return nil, nil
	}
	if p.Data == nil || p.BatchSizes == nil {
		return nil, unsupported("a PackedSequence without its data or its batch sizes")
	}
	args := Tuple{}
	for _, t := range p.parts() {
		low, err := e.Lower(*t)
		if err != nil {
			return nil, err
		}
		args = append(args, low)
	}
	return &pickle.Object{Class: packedClass, New: true, Args: args}, nil
}
