package value

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// A PackedSequence is torch.nn.utils.rnn's: sequences of different lengths, sorted by length, step
// by step.
type PackedSequence struct {
	Data            *tensor.Tensor // the elements of all sequences, all first ones, then all second ones, …
	BatchSizes      *tensor.Tensor // int64, how many sequences have each step
	SortedIndices   *tensor.Tensor // int64, or nil where the sequences came sorted
	UnsortedIndices *tensor.Tensor // the other way round, or nil
}

// PackedClass is its class in Python, and its constructor.
var PackedClass = Named("torch.nn.utils.rnn.PackedSequence")

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

// Packed reads PackedSequence(data, batch_sizes, sorted_indices, unsorted_indices).
func (l *Lifter) Packed(o *pickle.Object) (any, error) {
	p := new(PackedSequence)
	parts := p.parts()
	if len(o.Args) < 2 || len(o.Args) > len(parts) { // PyTorch 1.0 had no indices
		return nil, Malformed("a PackedSequence has %d parts", len(o.Args))
	}
	for n, arg := range o.Args {
		v, err := l.Lift(arg)
		if err != nil {
			return nil, err
		}
		if t, ok := v.(*tensor.Tensor); ok {
			*parts[n] = t
		} else if v != nil || n < 2 {
			return nil, Malformed("part %d of a PackedSequence is %T", n+1, v)
		}
	}
	return p, nil
}

func (l *Lowerer) packed(p *PackedSequence, depth int) (any, error) {
	if p == nil {
		return nil, nil
	}
	if p.Data == nil || p.BatchSizes == nil {
		return nil, Unsupported("a PackedSequence without its data or its batch sizes")
	}
	args := Tuple{}
	for _, t := range p.parts() {
		low, err := l.lower(*t, depth+1)
		if err != nil {
			return nil, err
		}
		args = append(args, low)
	}
	return &pickle.Object{Class: PackedClass, New: true, Args: args}, nil
}
