package tree

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// Keys of the map that holds nested rows.
const (
	valuesKey  = "values"
	offsetsKey = "offsets"
)

// planRagged plans the tensors of rows with different lengths. The rows must have at least one
// dimension and must be on the host.
func (c *collator) planRagged(n *Node, rows []*tensor.Tensor) (*Node, error) {
	first := rows[0]
	for row, t := range rows {
		err := checkTensorsMatch(t, first, 1)
		switch {
		case t.Dims() == 0:
			err = valueError("ragged row has 0 dimensions, want at least 1")
		case t.Device() != nil:
			err = valueError("ragged row is on %v: copy it to the host", tensor.Place{Device: t.Device()})
		}
		if err != nil {
			return nil, c.rowError(row, err)
		}
	}
	if c.rules.list[n.Rule].Nested {
		c.planNested(rows)
		return &Node{Kind: Map, Keys: []any{valuesKey, offsetsKey}, Items: []*Node{{Kind: Tensor}, {Kind: Tensor}}}, nil
	}
	return &Node{Kind: Tensor}, c.planPadded(c.rules.list[n.Rule], rows)
}

// planNested plans the concatenation of the rows, and their offsets.
func (c *collator) planNested(rows []*tensor.Tensor) {
	offsets := offsetsOf(rows)
	shape := slices.Clone(rows[0].Shape())
	shape[0] = int(offsets[len(rows)])
	c.addField(Field{DType: rows[0].DType(), Shape: shape}, func(to *tensor.Tensor) {
		for row, t := range rows {
			copyToView(to.Narrow(0, int(offsets[row]), t.Dim(0)), t)
		}
	})
	c.planNumbers(offsets)
}

// planPadded plans one tensor with all rows padded to the same length.
func (c *collator) planPadded(r Rule, rows []*tensor.Tensor) error {
	length, err := c.padLength(r, rows)
	if err != nil {
		return err
	}
	shape := slices.Insert(slices.Clone(rows[0].Shape()), 0, len(rows))
	shape[1] = length
	c.addField(Field{DType: rows[0].DType(), Shape: shape}, func(to *tensor.Tensor) {
		to.Fill(r.Value)
		for row, t := range rows {
			one := to.Select(0, row)
			copyToView(one.Narrow(0, r.padStart(length, t.Dim(0)), t.Dim(0)), t)
			one.Close()
		}
	})
	return nil
}

// padStart returns the index at which a row of n elements begins when it is padded to length.
func (r Rule) padStart(length, n int) int {
	if r.Left {
		return length - n
	}
	return 0
}

// padLength returns the length that rows are padded to. It returns a [*RowError] if a row is longer
// than the rule's Length.
func (c *collator) padLength(r Rule, rows []*tensor.Tensor) (int, error) {
	longest := 0
	for row, t := range rows {
		if n := t.Dim(0); r.Length > 0 && n > r.Length {
			return 0, c.rowError(row, valueError(
				"ragged row has length %d, want at most %d: truncate it, or raise the padded length", n, r.Length))
		}
		longest = max(longest, t.Dim(0))
	}
	if r.Length > 0 {
		longest = r.Length
	}
	if r.Multiple > 0 {
		longest = (longest + r.Multiple - 1) / r.Multiple * r.Multiple
	}
	return longest, nil
}

// An extra is a field added by a rule.
type extra struct {
	name  string
	where path
	plan  func()
}

// ruleFields returns the fields that a rule adds beside the field n, which has the tensor with
// index at in each sample.
func (c *collator) ruleFields(n *Node, at int) (all []extra) {
	r := c.rules.list[n.Rule]
	lengths := make([]int64, len(c.samples))
	rows := make([]*tensor.Tensor, len(c.samples))
	for row, s := range c.samples {
		rows[row] = s.Tensors[at]
		lengths[row] = int64(rows[row].Dim(0))
	}
	if r.Mask != "" && !r.Nested {
		length, _ := c.padLength(r, rows)
		all = append(all, extra{r.Mask, slices.Clone(c.path), func() {
			c.addField(Field{DType: tensor.Bool, Shape: []int{len(rows), length}},
				func(to *tensor.Tensor) { fillMask(to, r, lengths) })
		}})
	}
	if r.Lengths != "" {
		all = append(all, extra{r.Lengths, slices.Clone(c.path), func() { c.planNumbers(lengths) }})
	}
	return all
}

// fillMask sets the elements of to that belong to a row to true, and the others to false.
func fillMask(to *tensor.Tensor, r Rule, lengths []int64) {
	length := to.Dim(1)
	bits := tensor.Data[bool](to)
	clear(bits)
	for row, n := range lengths {
		from := row*length + r.padStart(length, int(n))
		for i := range int(n) {
			bits[from+i] = true
		}
	}
}

// addRuleFields adds the fields of rules to a map by name, or to the end of a list. It returns an
// error if the map has a field of that name already.
func (c *collator) addRuleFields(out *Node, extras []extra) error {
	for _, e := range extras {
		if out.Kind == Map {
			if slices.Contains(out.Keys, any(e.name)) {
				return e.where.wrapError(valueError("rule adds field %q, which already exists", e.name))
			}
			out.Keys = append(slices.Clip(out.Keys), e.name)
		}
		e.plan()
		out.Items = append(out.Items, &Node{Kind: Tensor})
	}
	return nil
}
