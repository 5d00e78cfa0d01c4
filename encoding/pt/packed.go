package pt

import (
	"errors"

	"github.com/shoal-mp/shoal/tensor"
)

// PackedSequence corresponds to torch.nn.utils.rnn.PackedSequence: sequences of different
// lengths, sorted by decreasing length, and stored by time step. [Load] and Conn.Recv of package
// torch return one, and a program may make one. The caller must close it.
type PackedSequence struct {
	Data            *tensor.Tensor // (steps, …): step 0 of all sequences, step 1, …
	BatchSizes      *tensor.Tensor // int64: the number of sequences at each step
	SortedIndices   *tensor.Tensor // int64: original indices; nil if already sorted
	UnsortedIndices *tensor.Tensor // int64: the inverse permutation, or nil
}

// Close closes all tensors of the sequence that are not nil.
func (p *PackedSequence) Close() (err error) {
	for _, t := range []*tensor.Tensor{p.Data, p.BatchSizes, p.SortedIndices, p.UnsortedIndices} {
		if t != nil {
			err = errors.Join(err, t.Close())
		}
	}
	return err
}
