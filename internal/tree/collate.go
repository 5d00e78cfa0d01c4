package tree

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// ErrShape is wrapped by the error for a sample with another structure, dtype or shape than the
// first sample of its batch.
var ErrShape = errors.New("differs from the first sample of the batch")

// A flaw is an error with a kind for [errors.Is] that does not appear in its text.
type flaw struct {
	kind error
	text string
}

func (e *flaw) Error() string { return e.text }

func (e *flaw) Unwrap() error { return e.kind }

func shapeError(format string, args ...any) error {
	return &flaw{ErrShape, fmt.Sprintf(format, args...)}
}

func valueError(format string, args ...any) error {
	return &flaw{ErrValue, fmt.Sprintf(format, args...)}
}

// A Field describes one tensor of a batch.
type Field struct {
	DType  tensor.DType
	Shape  []int
	Device tensor.Device // nil is the host
	Inner  bool          // the tensor is a part of strings, which is not visible by itself
}

// A Memory allocates the tensors of a batch. It must return one tensor for each field, with its
// dtype, shape and device, which the caller then owns. The tensors need not be cleared.
type Memory func(fields []Field) ([]*tensor.Tensor, error)

// OnHeap is a [Memory] that allocates each tensor separately.
func OnHeap(fields []Field) ([]*tensor.Tensor, error) {
	all := make([]*tensor.Tensor, len(fields))
	for k, f := range fields {
		if f.Device == nil {
			all[k] = tensor.Empty(f.DType, f.Shape...)
			continue
		}
		t, err := tensor.On(f.Device).Empty(f.DType, f.Shape...)
		if err != nil {
			for _, t := range all[:k] {
				err = errors.Join(err, t.Close())
			}
			return nil, err
		}
		all[k] = t
	}
	return all, nil
}

// A RowError is the error of one sample among several. Row is the index of the sample.
type RowError struct {
	Row int
	Err error
}

// Error formats the index of the sample and the error.
func (e *RowError) Error() string { return fmt.Sprintf("sample %d: %v", e.Row, e.Err) }

// Unwrap returns Err.
func (e *RowError) Unwrap() error { return e.Err }

// Collate builds a batch from samples, which must not be empty and must all have the same
// structure. It combines them as torch's default_collate does: tensors are stacked, numbers
// become tensors, strings become lists of strings, and maps and lists of values become maps and
// lists of batches. rules must be the rules that the samples were flattened with, and memory
// allocates the tensors of the batch. The samples' tensors are copied and stay open. If one
// sample causes the error, the error is a [*RowError]; it wraps [ErrShape] if the sample
// differs from the first one, and [ErrValue] if the sample cannot be batched.
func Collate(samples []Value, rules Rules, memory Memory) (Value, error) {
	if len(samples) == 0 {
		return Value{}, errors.New("batch has 0 samples, want at least 1")
	}
	n, err := Parse(samples[0].Spec)
	if err != nil {
		return Value{}, err
	}
	for row, s := range samples {
		if s.Spec == samples[0].Spec {
			continue
		}
		if err := Differ(s.Spec, samples[0].Spec); err != nil {
			return Value{}, &RowError{row, err}
		}
		if samples, n, err = deepenSamples(samples, n); err != nil { // lists of other depths
			return Value{}, err
		}
		break
	}
	c := &collator{samples: samples, rules: rules}
	out, err := c.collateNode(n)
	if err != nil {
		return Value{}, err
	}
	return c.writeBatch(out, memory)
}

// A collator plans the tensors of a batch, and then fills them. fields and fills have an
// element for each tensor of the batch.
type collator struct {
	samples []Value
	rules   Rules
	next    int // index of the next tensor in each sample
	path    path
	fields  []Field
	fills   []func(to *tensor.Tensor)
}

// writeBatch allocates the tensors of the batch with memory, fills them, and returns the batch
// with the structure out.
func (c *collator) writeBatch(out *Node, memory Memory) (Value, error) {
	tensors, err := memory(c.fields)
	if err != nil {
		return Value{}, err
	}
	for k, fill := range c.fills {
		fill(tensors[k])
	}
	runtime.KeepAlive(c)
	return Value{out.Spec(), tensors}, nil
}

// addField adds a tensor to the batch. fill is called after its allocation, and must write all
// of its elements.
func (c *collator) addField(f Field, fill func(to *tensor.Tensor)) {
	c.fields, c.fills = append(c.fields, f), append(c.fills, fill)
}

func (c *collator) rowError(row int, err error) error { return &RowError{row, c.path.wrapError(err)} }

// nextTensors returns the next tensor of each sample, and advances c.next. The error is a
// [*RowError] that wraps [ErrSpec] if a sample has no more.
func (c *collator) nextTensors() ([]*tensor.Tensor, error) {
	rows := make([]*tensor.Tensor, len(c.samples))
	for row, s := range c.samples {
		if c.next >= len(s.Tensors) {
			return nil, c.rowError(row, fmt.Errorf("%w: got only %d tensors", ErrSpec, len(s.Tensors)))
		}
		rows[row] = s.Tensors[c.next]
	}
	c.next++
	return rows, nil
}

func (c *collator) collateNode(n *Node) (*Node, error) {
	switch n.Kind {
	case Map, List, Tuple:
		return c.collateItems(n)
	case Ragged: // at the top, where a rule adds no fields
		out, _, err := c.collateRagged(n)
		return out, err
	case None:
		return nil, c.rowError(0, valueError("nil cannot be batched"))
	case Texts, BytesList:
		return nil, c.rowError(0, valueError("lists of strings cannot be batched again"))
	}
	rows, err := c.nextTensors()
	if err != nil {
		return nil, err
	}
	if n.Kind == Text || n.Kind == Bytes {
		return c.planTexts(n.Kind, rows), nil
	}
	return &Node{Kind: Tensor}, c.stackRows(rows)
}

// collateRagged plans the batch of a ragged part, and returns its structure. It also returns
// the fields that its rule adds.
func (c *collator) collateRagged(n *Node) (*Node, []extra, error) {
	of := make([][]*tensor.Tensor, len(c.samples))
	for range n.Depth {
		rows, err := c.nextTensors()
		if err != nil {
			return nil, nil, err
		}
		for row, t := range rows {
			of[row] = append(of[row], t)
		}
	}
	return c.planRagged(n, of)
}

// collateItems plans a map or a list of batches, and returns its structure. Fields added by
// rules follow the fields of the samples.
func (c *collator) collateItems(n *Node) (*Node, error) {
	out := &Node{Kind: n.Kind, Keys: n.Keys}
	if n.Kind == Tuple {
		out.Kind = List
	}
	var extras []extra
	for i, item := range n.Items {
		var step any = i
		if n.Kind == Map {
			step = n.Keys[i]
		}
		c.path = append(c.path, step)
		batch, added, err := c.collateItem(item)
		c.path = c.path[:len(c.path)-1]
		if err != nil {
			return nil, err
		}
		out.Items, extras = append(out.Items, batch), append(extras, added...)
	}
	return out, c.addRuleFields(out, extras)
}

func (c *collator) collateItem(n *Node) (*Node, []extra, error) {
	if n.Kind == Ragged {
		return c.collateRagged(n)
	}
	out, err := c.collateNode(n)
	return out, nil, err
}

// stackRows plans the tensor that stacks rows. All rows must have the same dtype, shape and
// device; otherwise the error is a [*RowError] that wraps [ErrShape].
func (c *collator) stackRows(rows []*tensor.Tensor) error {
	first := rows[0]
	for row, t := range rows {
		if err := checkTensorsMatch(t, first, 0); err != nil {
			return c.rowError(row, err)
		}
	}
	shape := slices.Insert(slices.Clone(first.Shape()), 0, len(rows))
	c.addField(Field{DType: first.DType(), Shape: shape, Device: first.Device()}, func(to *tensor.Tensor) {
		for row, t := range rows {
			copyToView(to.Select(0, row), t)
		}
	})
	return nil
}

// copyToView copies from to the view to, and closes the view.
func copyToView(to, from *tensor.Tensor) {
	to.CopyFrom(from)
	to.Close()
}

// checkTensorsMatch returns an error that wraps [ErrShape] unless t has the dtype, the device
// and the shape of first. It ignores the sizes of the first skip dimensions.
func checkTensorsMatch(t, first *tensor.Tensor, skip int) error {
	switch {
	case t.DType() != first.DType():
		return shapeError("got %v, want %v as in the first sample", t.DType(), first.DType())
	case t.Device() != first.Device():
		return shapeError("got device %v, want %v as in the first sample", tensor.Place{Device: t.Device()},
			tensor.Place{Device: first.Device()})
	case t.Dims() != first.Dims() || !slices.Equal(t.Shape()[skip:], first.Shape()[skip:]):
		return shapeError("got shape %v, want %v as in the first sample", t.Shape(), first.Shape())
	}
	return nil
}

// planTexts plans the two tensors of strings or of bytes, with one item for each row, and
// returns their structure.
func (c *collator) planTexts(k Kind, rows []*tensor.Tensor) *Node {
	offsets := offsetsOf(rows)
	total := offsets[len(rows)]
	c.addField(Field{DType: tensor.Uint8, Shape: []int{int(total)}, Inner: true}, func(to *tensor.Tensor) {
		all := tensor.Data[uint8](to)
		for row, t := range rows {
			copy(all[offsets[row]:], tensor.Data[uint8](t))
		}
	})
	c.planNumbers(offsets)
	c.fields[len(c.fields)-1].Inner = true
	if k == Text {
		return &Node{Kind: Texts}
	}
	return &Node{Kind: BytesList}
}

// offsetsOf returns the offset of each row if the rows are concatenated, followed by the total
// length.
func offsetsOf(rows []*tensor.Tensor) []int64 {
	offsets := make([]int64, len(rows)+1)
	for row, t := range rows {
		offsets[row+1] = offsets[row] + int64(t.Dim(0))
	}
	return offsets
}

// planNumbers plans an int64 tensor with the elements v.
func (c *collator) planNumbers(v []int64) {
	c.addField(Field{DType: tensor.Int64, Shape: []int{len(v)}},
		func(to *tensor.Tensor) { copy(tensor.Data[int64](to), v) })
}

// deepenSamples returns the samples with lists of the same depths, and their structure. The
// structures may differ in these depths alone; n is the first sample's structure, and is changed to
// the common one. The samples are unchanged. The error is a [*RowError] for a sample that has a
// list of numbers where another one has a list of lists.
func deepenSamples(samples []Value, n *Node) ([]Value, *Node, error) {
	nodes := make([]*Node, len(samples))
	for row, s := range samples {
		var err error
		if nodes[row], err = Parse(s.Spec); err != nil {
			return nil, nil, err
		}
		n.raiseDepths(nodes[row])
	}
	out := make([]Value, len(samples))
	spec := n.Spec()
	var want []*Node
	n.Leaves(func(leaf *Node) { want = append(want, leaf) })
	for row, s := range samples {
		out[row].Spec = spec
		rest, at := s.Tensors, 0
		var err error
		nodes[row].Leaves(func(leaf *Node) {
			of := rest[:min(leaf.Tensors(), len(rest))]
			rest = rest[len(of):]
			if leaf.Kind == Ragged && err == nil && len(of) == leaf.Depth {
				of, err = deepenRagged(of, leaf.Depth, want[at].Depth)
			}
			out[row].Tensors = append(out[row].Tensors, of...)
			at++
		})
		if err != nil {
			return nil, nil, &RowError{row, err}
		}
	}
	return out, n, nil
}

// raiseDepths makes each depth in n at least the one in other, which has the same structure.
func (n *Node) raiseDepths(other *Node) {
	n.Depth = max(n.Depth, other.Depth)
	for i, item := range n.Items {
		item.raiseDepths(other.Items[i])
	}
}

// Differ returns an error that describes the first difference between spec, the structure of a
// sample, and first, the structure of the first sample of its batch. The error wraps
// [ErrShape], or [ErrSpec] if a description is invalid. Differ returns nil if the structures
// are equal but for the depths of ragged lists.
func Differ(spec, first string) error {
	a, errA := Parse(spec)
	b, errB := Parse(first)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	return compareNodes(nil, a, b)
}

func compareNodes(p path, a, b *Node) error {
	switch {
	case a.Kind != b.Kind:
		return p.wrapError(shapeError("got %v, want %v as in the first sample", a.Kind, b.Kind))
	case a.Kind == Map && !slices.Equal(a.Keys, b.Keys):
		return p.wrapError(shapeError("got keys %q, want %q as in the first sample", a.Keys, b.Keys))
	case len(a.Items) != len(b.Items):
		return p.wrapError(shapeError("got %d items, want %d as in the first sample", len(a.Items), len(b.Items)))
	}
	for i := range a.Items {
		var step any = i
		if a.Kind == Map {
			step = a.Keys[i]
		}
		if err := compareNodes(append(p, step), a.Items[i], b.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
