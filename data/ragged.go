package data

import (
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// Ragged maps the path of each field that differs between samples in its first dimension to a rule,
// a [Pad] or a [Nested]. A path consists of keys separated by dots, and [i] for item i of a list or
// field i of a plain [Sample]. "*" stands for all other tensors with at least one dimension. A
// slice of numbers at a path becomes a one-dimensional tensor. A path that is missing in the
// samples is an error.
type Ragged map[string]raggedRule

type raggedRule interface{ rule() tree.Rule }

// Pad stacks rows of different lengths into one tensor of shape (samples, length, …), where length
// is the maximum of the lengths. The other dimensions must be equal.
//
// If the field is a list of rows, or a list of such lists, the tensor has a dimension for each
// level: (samples, items, length, …). At each level the lists are padded to the longest one of the
// batch. An empty list may stand for a list of any depth and dtype.
type Pad struct {
	Value    float64 // padding value
	Left     bool    // pad before the row instead of after it
	Multiple int     // round the rows' length up to a multiple of this number; 0: do not
	Length   int     // length of all rows; longer rows are an error; 0: the longest row's length

	// Mask and Lengths are the names of additional fields, added beside the padded one, or at the
	// end of a list. Mask is a (samples, length) Bool tensor, true for elements of the row. Lengths
	// is a (samples) Int64 tensor. For lists of rows they are (samples, items, length) and
	// (samples, items), with length 0 where there is no row. Empty names add no fields.
	Mask, Lengths string
}

func (p Pad) rule() tree.Rule {
	return tree.Rule{Value: p.Value, Left: p.Left, Multiple: p.Multiple, Length: p.Length, Mask: p.Mask,
		Lengths: p.Lengths}
}

// Nested concatenates rows of different lengths without padding; lists of rows are an error. In a
// batch the field is a map with "values" and "offsets", or a [NestedRows] with [BatchesOf]. The
// pair can be passed to torch.nested.nested_tensor_from_jagged.
type Nested struct {
	Lengths string // name of an additional field with the lengths, as in Pad; empty: none
}

func (n Nested) rule() tree.Rule { return tree.Rule{Nested: true, Lengths: n.Lengths} }

// NestedRows are concatenated rows of different lengths.
type NestedRows struct {
	Values  *tensor.Tensor `data:"values"`  // concatenated rows: (sum of lengths, …)
	Offsets *tensor.Tensor `data:"offsets"` // (samples + 1) Int64: starts of the rows, last end
}

func (r Ragged) rulesByName() map[string]tree.Rule {
	rules := make(map[string]tree.Rule, len(r))
	for path, how := range r {
		rules[path] = how.rule()
	}
	return rules
}

// invalidRule returns a description of the first invalid rule, or "" if all are valid.
func (r Ragged) invalidRule() string {
	for path, how := range r {
		if how == nil {
			return "Ragged: no rule for " + path
		}
		if p := how.rule(); p.Length < 0 || p.Multiple < 0 {
			return "Pad of " + path + ": got a negative Length or Multiple, want at least 0"
		} else if p.Length > 0 && p.Multiple > 0 && p.Length%p.Multiple != 0 {
			return "Pad of " + path + ": want a Length that is a multiple of Multiple"
		}
	}
	return ""
}
