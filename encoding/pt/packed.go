package pt

import (
	"errors"

	"github.com/shoal-mp/shoal/tensor"
)

// A PackedSequence is torch.nn.utils.rnn's: sequences of different lengths, sorted by length, step
// by step. Its owner closes it.
type PackedSequence struct {
	Data            *tensor.Tensor // the elements of all sequences, all first ones, then all second ones, …
	BatchSizes      *tensor.Tensor // int64, how many sequences have each step
	SortedIndices   *tensor.Tensor // int64, or nil where the sequences came sorted
	UnsortedIndices *tensor.Tensor // the other way round, or nil
}

// Close closes its tensors.
func (p *PackedSequence) Close() (err error) {
	for _, t := range []*tensor.Tensor{p.Data, p.BatchSizes, p.SortedIndices, p.UnsortedIndices} {
		if t != nil {
			err = errors.Join(err, t.Close())
		}
	}
	return err
}
