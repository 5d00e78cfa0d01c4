package data

import (
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// Ragged gives a rule, a [Pad] or a [Nested], for each field whose first dimension differs from
// sample to sample. The key is the path of the field: keys with dots between them, and [i] for item
// i of a list or field i of a plain Sample. "*" stands for all other tensors that have a dimension.
// A slice of numbers at a path becomes a tensor of one dimension. A path that samples do not have
// is an error.
type Ragged map[string]raggedRule

type raggedRule interface{ rule() tree.Rule }

// Pad makes one tensor of rows of different lengths: (samples, length, …), where length is that of
// the longest row. The other dimensions must be equal.
type Pad struct {
	Value    float64 // value of the padding after a row
	Left     bool    // put the padding before a row
	Multiple int     // round the length up to a multiple of this number; 0: do not
	Length   int     // length of all rows; 0: that of the longest. A longer row is an error

	// Mask and Lengths are names of further fields, which are added beside the padded one, or at
	// the end of a list: (samples, length) Bool, true where a row has elements, and (samples)
	// Int64, the lengths of the rows. Empty names add none.
	Mask, Lengths string
}

func (p Pad) rule() tree.Rule {
	return tree.Rule{Value: p.Value, Left: p.Left, Multiple: p.Multiple, Length: p.Length, Mask: p.Mask,
		Lengths: p.Lengths}
}

// Nested stores rows of different lengths one after the other, without padding. In a batch the
// field is a map with "values" and "offsets", or a [NestedRows] with BatchesOf.
// torch.nested.nested_tensor_from_jagged takes the two.
type Nested struct {
	Lengths string // name of a further field with the lengths of the rows, as in Pad; empty: none
}

func (n Nested) rule() tree.Rule { return tree.Rule{Nested: true, Lengths: n.Lengths} }

// NestedRows are rows of different lengths, stored one after the other.
type NestedRows struct {
	Values  *tensor.Tensor `data:"values"`  // all rows, one after the other: (sum of the lengths, …)
	Offsets *tensor.Tensor `data:"offsets"` // (samples + 1) Int64: begin of each row, and end of the last
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
