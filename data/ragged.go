package data

import (
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// Ragged says what becomes of fields whose first dimension differs from sample to sample, by the
// path of the field: keys with dots between them, and [i] for the item of a list, or the field of a
// plain Sample. "*" stands for all tensors with dimensions that are not named. A slice of numbers
// at a path becomes a tensor of one dimension. A path that samples do not have is an error.
//
// What stands for a path is a Pad or a Nested.
type Ragged map[string]raggedRule

type raggedRule interface{ rule() tree.Rule }

// Pad makes rows of different lengths a tensor: (samples, length, …), where length is that of the
// longest row. The other dimensions are equal.
type Pad struct {
	Value    float64 // what is written after a row
	Left     bool    // before it instead
	Multiple int     // length is made a multiple of it, if it is not 0
	Length   int     // of all rows, if it is not 0; a longer row is an error

	// Mask and Lengths name fields that are added beside the padded one, or at the end of a list:
	// true where a row has elements, (samples, length) of bool, and how many it has, (samples) of
	// int64.
	Mask, Lengths string
}

func (p Pad) rule() tree.Rule {
	return tree.Rule{Value: p.Value, Left: p.Left, Multiple: p.Multiple, Length: p.Length, Mask: p.Mask,
		Lengths: p.Lengths}
}

// Nested puts rows of different lengths one after the other, which wastes nothing: a batch has a
// map with "values" and "offsets" there, which goes into a NestedRows, and is what
// torch.nested.nested_tensor_from_jagged takes.
type Nested struct {
	Lengths string // names a field that is added beside it, as that of Pad
}

func (n Nested) rule() tree.Rule { return tree.Rule{Nested: true, Lengths: n.Lengths} }

// NestedRows are rows of different lengths.
type NestedRows struct {
	Values  *tensor.Tensor `data:"values"`  // all rows, one after the other: (sum of the lengths, …)
	Offsets *tensor.Tensor `data:"offsets"` // (samples + 1) of int64: where each row begins, and the last one ends
}

func (r Ragged) rules() map[string]tree.Rule {
	rules := make(map[string]tree.Rule, len(r))
	for path, how := range r {
		rules[path] = how.rule()
	}
	return rules
}

// wrong says what no Ragged may have.
func (r Ragged) wrong() string {
	for path, how := range r {
		if how == nil {
			return "Ragged has no rule for " + path
		}
		if p := how.rule(); p.Length < 0 || p.Multiple < 0 {
			return "the Pad of " + path + " has a negative Length or Multiple"
		} else if p.Length > 0 && p.Multiple > 0 && p.Length%p.Multiple != 0 {
			return "the Pad of " + path + " has a Length that is no multiple of Multiple"
		}
	}
	return ""
}
