package value

import (
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// PackedClass is the class of packed sequences in Python, and its constructor.
var PackedClass = Named("torch.nn.utils.rnn.PackedSequence")

// Packed converts the arguments of PackedSequence(data, batch_sizes, sorted_indices,
// unsorted_indices). The last two may be missing or None, and are then nil. The error wraps
// [ErrProtocol] if an argument is not a tensor. The caller must close the tensors. After an error,
// parts contains those that were converted.
func (l *Lifter) Packed(o *pickle.Object) (parts [4]*tensor.Tensor, err error) {
	if len(o.Args) < 2 || len(o.Args) > len(parts) { // PyTorch 1.0 had no indices
		return parts, Malformed("PackedSequence has %d parts", len(o.Args))
	}
	for n, arg := range o.Args {
		v, err := l.Lift(arg)
		if err != nil {
			return parts, err
		}
		if t, ok := v.(*tensor.Tensor); ok {
			parts[n] = t
		} else if v != nil || n < 2 {
			return parts, Malformed("part %d of a PackedSequence is %T, want a tensor", n+1, v)
		}
	}
	return parts, nil
}

// Packed returns a PackedSequence with the given four parts. The last two may be nil. If one of
// the first two is nil, the error wraps [ErrUnsupported].
func (l *Lowerer) Packed(parts ...*tensor.Tensor) (any, error) {
	if parts[0] == nil || parts[1] == nil {
		return nil, Unsupported("PackedSequence lacks its data or its batch sizes")
	}
	args := Tuple{}
	for _, t := range parts {
		low, err := l.Lower(t)
		if err != nil {
			return nil, err
		}
		args = append(args, low)
	}
	return &pickle.Object{Class: PackedClass, New: true, Args: args}, nil
}
