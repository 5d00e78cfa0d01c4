package pt

import (
	"errors"

	"github.com/shoal-mp/shoal/tensor"
)

// A PackedSequence is torch.nn.utils.rnn.PackedSequence: sequences of different lengths, longest
// first, stored step by step. The caller closes it.
type PackedSequence struct {
	Data            *tensor.Tensor // (steps, …): the first steps of all sequences, then the second, …
	BatchSizes      *tensor.Tensor // int64: how many sequences have a first step, a second, …
	SortedIndices   *tensor.Tensor // int64: where each sorted sequence was, nil if they came sorted
	UnsortedIndices *tensor.Tensor // int64: the inverse of SortedIndices, or nil
}

// Close closes the four tensors.
func (p *PackedSequence) Close() (err error) {
	for _, t := range []*tensor.Tensor{p.Data, p.BatchSizes, p.SortedIndices, p.UnsortedIndices} {
		if t != nil {
			err = errors.Join(err, t.Close())
		}
	}
	return err
}
