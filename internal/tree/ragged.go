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

// A raggedField is a ragged part of all samples: for each sample a row, or a list of rows, of lists
// and so on.
type raggedField struct {
	rule    Rule
	depth   int
	values  []*tensor.Tensor // of each sample: its rows, concatenated
	lengths [][][]int64      // of each sample: the lengths of its lists by level, from the rows on
	dims    []int            // dimensions of the batch from the samples' items to the rows' elements
}

// newRaggedField returns the field of the ragged part n. of are the tensors of each sample. The
// error is a [*RowError] if the rows of a sample have no dimensions, are on a device, do not
// match the first rows, or are longer than the rule's Length.
func (c *collator) newRaggedField(n *Node, of [][]*tensor.Tensor) (*raggedField, error) {
	f := &raggedField{rule: c.rules.list[n.Rule], depth: n.Depth}
	for row, t := range of {
		switch {
		case t[0].Dims() == 0:
			return nil, c.rowError(row, valueError("ragged row has 0 dimensions, want at least 1"))
		case t[0].Device() != nil:
			return nil, c.rowError(row, valueError("ragged row is on %v: copy it to the host",
				tensor.Place{Device: t[0].Device()}))
		}
		f.values = append(f.values, t[0])
		levels := make([][]int64, n.Depth-1)
		for k := range levels {
			levels[k] = tensor.Data[int64](t[k+1])
		}
		f.lengths = append(f.lengths, levels)
	}
	first := f.firstValues()
	for row, t := range f.values {
		if isEmptyRow(t) {
			continue
		}
		if err := checkTensorsMatch(t, first, 1); err != nil {
			return nil, c.rowError(row, err)
		}
	}
	return f, c.setDims(f)
}

// firstValues returns the rows of the first sample that has any with a dtype, or of the first
// sample if there is none.
func (f *raggedField) firstValues() *tensor.Tensor {
	if t := firstRow(f.values); t != nil {
		return t
	}
	return f.values[0]
}

// count returns the number of items of a sample: of the elements of a row, or of the lists.
func (f *raggedField) count(sample int) int {
	if f.depth == 1 {
		return f.values[sample].Dim(0)
	}
	return len(f.lengths[sample][f.depth-2])
}

// setDims sets f.dims, the dimensions that lists are padded to. It returns a [*RowError] if a
// row is longer than the rule's Length.
func (c *collator) setDims(f *raggedField) error {
	f.dims = make([]int, f.depth)
	for row := range f.values {
		f.dims[0] = max(f.dims[0], f.count(row))
		for level, lengths := range f.lengths[row] {
			for _, n := range lengths {
				at := f.depth - 1 - level
				f.dims[at] = max(f.dims[at], int(n))
			}
		}
		if last, most := f.dims[f.depth-1], f.rule.Length; most > 0 && last > most && !f.rule.Nested {
			return c.rowError(row, valueError(
				"ragged row has length %d, want at most %d: truncate it, or raise the padded length", last, most))
		}
	}
	last := &f.dims[f.depth-1]
	if f.rule.Length > 0 {
		*last = f.rule.Length
	}
	if m := f.rule.Multiple; m > 0 {
		*last = (*last + m - 1) / m * m
	}
	return nil
}

// rowsOfBatch returns the number of rows in the padded batch, including those of padding.
func (f *raggedField) rowsOfBatch() int {
	n := len(f.values)
	for _, d := range f.dims[:f.depth-1] {
		n *= d
	}
	return n
}

// eachRow calls visit for each row of the sample with the given index: with its position among
// the rows of the padded batch, and with its first element among the sample's values and the
// number of its elements.
func (f *raggedField) eachRow(sample int, visit func(place, from, n int)) {
	next := make([]int, f.depth) // index of the next list at each level
	from := 0
	var walk func(level, n, place int)
	walk = func(level, n, place int) {
		if level == f.depth-1 {
			visit(place, from, n)
			from += n
			return
		}
		for i := range n {
			at := f.depth - 2 - level
			length := f.lengths[sample][at][next[at]]
			next[at]++
			walk(level+1, int(length), place*f.dims[level]+f.rule.padStart(f.dims[level], n)+i)
		}
	}
	walk(0, f.count(sample), sample)
}

// planRagged plans the tensors of rows with different lengths, and returns their structure. of
// are the tensors of each sample. The rows must have at least one dimension and must be on the
// host. Fields that the rule adds are returned. The error is a [*RowError].
func (c *collator) planRagged(n *Node, of [][]*tensor.Tensor) (*Node, []extra, error) {
	f, err := c.newRaggedField(n, of)
	switch {
	case err != nil:
		return nil, nil, err
	case f.rule.Nested && f.depth > 1:
		return nil, nil, c.rowError(0, valueError("lists of rows cannot be concatenated: pad them"))
	case f.rule.Nested:
		c.planNested(f)
		return &Node{Kind: Map, Keys: []any{valuesKey, offsetsKey}, Items: []*Node{{Kind: Tensor}, {Kind: Tensor}}},
			c.ruleFields(f), nil
	}
	c.planPadded(f)
	return &Node{Kind: Tensor}, c.ruleFields(f), nil
}

// planNested plans the concatenation of the rows, and their offsets.
func (c *collator) planNested(f *raggedField) {
	offsets, first := offsetsOf(f.values), f.firstValues()
	shape := slices.Clone(first.Shape())
	shape[0] = int(offsets[len(f.values)])
	c.addField(Field{DType: first.DType(), Shape: shape}, func(to *tensor.Tensor) {
		for row, t := range f.values {
			if t.Dim(0) > 0 {
				copyToView(to.Narrow(0, int(offsets[row]), t.Dim(0)), t)
			}
		}
	})
	c.planNumbers(offsets)
}

// planPadded plans one tensor with all lists padded to the same lengths.
func (c *collator) planPadded(f *raggedField) {
	first := f.firstValues()
	shape := append([]int{len(f.values)}, f.dims...)
	inner := f.dims[f.depth-1]
	rows := append([]int{f.rowsOfBatch(), inner}, first.Shape()[1:]...)
	c.addField(Field{DType: first.DType(), Shape: append(shape, first.Shape()[1:]...)}, func(to *tensor.Tensor) {
		to.Fill(f.rule.Value)
		to = to.View(rows...)
		defer to.Close()
		for sample, values := range f.values {
			f.eachRow(sample, func(place, from, n int) {
				if n > 0 {
					copyRow(to, place, f.rule.padStart(inner, n), values, from, n)
				}
			})
		}
	})
}

// copyRow copies n elements of values, from an index on, to row place of to, at index start.
func copyRow(to *tensor.Tensor, place, start int, values *tensor.Tensor, from, n int) {
	row := to.Select(0, place)
	defer row.Close()
	part := values.Narrow(0, from, n)
	defer part.Close()
	copyToView(row.Narrow(0, start, n), part)
}

// padStart returns the index at which a row of n elements begins when it is padded to length.
func (r Rule) padStart(length, n int) int {
	if r.Left {
		return length - n
	}
	return 0
}

// An extra is a field added by a rule. where is the path of the ragged part, and plan adds the
// field to the batch.
type extra struct {
	name  string
	where path
	plan  func()
}

// ruleFields returns the fields that the rule of f adds beside it.
func (c *collator) ruleFields(f *raggedField) (all []extra) {
	lists := append([]int{len(f.values)}, f.dims[:f.depth-1]...)
	if f.rule.Mask != "" && !f.rule.Nested {
		shape := append(slices.Clone(lists), f.dims[f.depth-1])
		all = append(all, extra{f.rule.Mask, slices.Clone(c.path), func() {
			c.addField(Field{DType: tensor.Bool, Shape: shape}, f.fillMask)
		}})
	}
	if f.rule.Lengths != "" {
		all = append(all, extra{f.rule.Lengths, slices.Clone(c.path), func() {
			c.addField(Field{DType: tensor.Int64, Shape: lists}, f.fillLengths)
		}})
	}
	return all
}

// fillMask sets the elements of to that belong to a row to true, and the others to false.
func (f *raggedField) fillMask(to *tensor.Tensor) {
	bits, inner := tensor.Data[bool](to), f.dims[f.depth-1]
	clear(bits)
	for sample := range f.values {
		f.eachRow(sample, func(place, _, n int) {
			from := place*inner + f.rule.padStart(inner, n)
			for i := range n {
				bits[from+i] = true
			}
		})
	}
}

// fillLengths sets the elements of to to the lengths of the rows, and to 0 where there is none.
func (f *raggedField) fillLengths(to *tensor.Tensor) {
	all := tensor.Data[int64](to)
	clear(all)
	for sample := range f.values {
		f.eachRow(sample, func(place, _, n int) { all[place] = int64(n) })
	}
}

// addRuleFields adds the fields of rules to the map out by name, or to the end of the list out.
// It returns an error that wraps [ErrValue] if the map has a field of that name already.
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
