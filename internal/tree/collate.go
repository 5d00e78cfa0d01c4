package tree

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// ErrShape is wrapped where a sample is of another structure, dtype or shape than the first of its
// batch.
var ErrShape = errors.New("unlike the first of the batch")

// A flaw is an error of a kind, which it does not repeat in its text.
type flaw struct {
	kind error
	text string
}

func (e *flaw) Error() string { return e.text }

func (e *flaw) Unwrap() error { return e.kind }

func misshapen(format string, args ...any) error {
	return &flaw{ErrShape, fmt.Sprintf(format, args...)}
}

func worthless(format string, args ...any) error {
	return &flaw{ErrValue, fmt.Sprintf(format, args...)}
}

// A Field is what a tensor of a batch is to be like.
type Field struct {
	DType  tensor.DType
	Shape  []int
	Device tensor.Device // nil is the host
	Inner  bool          // it is part of strings, and nobody sees it by itself
}

// A Memory makes the tensors of a batch. They hold anything.
type Memory func(fields []Field) ([]*tensor.Tensor, error)

// OnHeap is the Memory of tensors by themselves.
func OnHeap(fields []Field) ([]*tensor.Tensor, error) {
	all := make([]*tensor.Tensor, len(fields))
	for k, f := range fields {
		if f.Device == nil {
			all[k] = tensor.Empty(f.DType, f.Shape...)
			continue
		}
		t, err := tensor.On(f.Device).Empty(f.DType, f.Shape...)
		if err != nil {
			return nil, err
		}
		all[k] = t
	}
	return all, nil
}

// A RowError says which sample of those given does not fit.
type RowError struct {
	Row int
	Err error
}

// Error returns one line.
func (e *RowError) Error() string { return fmt.Sprintf("sample %d: %v", e.Row, e.Err) }

// Unwrap returns Err.
func (e *RowError) Unwrap() error { return e.Err }

// Collate makes a batch of values of one structure, as torch's default_collate does: tensors are
// stacked, numbers become tensors, strings lists of strings, and maps and lists of values become
// maps and lists of batches. The error is a *RowError where one of the values is to blame.
func Collate(samples []Value, rules Rules, memory Memory) (Value, error) {
	if len(samples) == 0 {
		return Value{}, errors.New("a batch of no samples")
	}
	n, err := Parse(samples[0].Spec)
	if err != nil {
		return Value{}, err
	}
	for row, s := range samples {
		if s.Spec != samples[0].Spec {
			return Value{}, &RowError{row, Differ(s.Spec, samples[0].Spec)}
		}
	}
	c := &collator{samples: samples, rules: rules}
	out, err := c.node(n)
	if err != nil {
		return Value{}, err
	}
	return c.write(out, memory)
}

// A collator plans the tensors of a batch, and then writes them.
type collator struct {
	samples []Value
	rules   Rules
	next    int // tensor of the samples
	path    path
	fields  []Field
	fills   []func(to *tensor.Tensor)
}

// write makes the batch.
func (c *collator) write(out *Node, memory Memory) (Value, error) {
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

// plan adds a tensor to the batch.
func (c *collator) plan(f Field, fill func(to *tensor.Tensor)) {
	c.fields, c.fills = append(c.fields, f), append(c.fills, fill)
}

func (c *collator) wrong(row int, err error) error { return &RowError{row, c.path.at(err)} }

// rows returns the next tensor of each sample.
func (c *collator) rows() ([]*tensor.Tensor, error) {
	rows := make([]*tensor.Tensor, len(c.samples))
	for row, s := range c.samples {
		if c.next >= len(s.Tensors) {
			return nil, c.wrong(row, fmt.Errorf("%w: it has %d tensors", ErrSpec, len(s.Tensors)))
		}
		rows[row] = s.Tensors[c.next]
	}
	c.next++
	return rows, nil
}

func (c *collator) node(n *Node) (*Node, error) {
	switch n.Kind {
	case Map, List, Tuple:
		return c.items(n)
	case None:
		return nil, c.wrong(0, worthless("a nil, of which there is no batch"))
	case Texts, BytesList:
		return nil, c.wrong(0, worthless("a batch of batches"))
	}
	rows, err := c.rows()
	if err != nil {
		return nil, err
	}
	switch n.Kind {
	case Text, Bytes:
		return c.texts(n.Kind, rows), nil
	case Ragged:
		return c.ragged(n, rows)
	}
	return &Node{Kind: Tensor}, c.stack(rows)
}

// items makes a map or a list of batches. What a rule adds comes after the fields that there are.
func (c *collator) items(n *Node) (*Node, error) {
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
		first := c.next
		batch, err := c.node(item)
		if err == nil && item.Kind == Ragged {
			extras = append(extras, c.extras(item, first)...)
		}
		c.path = c.path[:len(c.path)-1]
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, batch)
	}
	return out, c.beside(out, extras)
}

// stack plans the tensor of rows of one layout.
func (c *collator) stack(rows []*tensor.Tensor) error {
	first := rows[0]
	for row, t := range rows {
		if err := alike(t, first, 0); err != nil {
			return c.wrong(row, err)
		}
	}
	shape := slices.Insert(slices.Clone(first.Shape()), 0, len(rows))
	c.plan(Field{DType: first.DType(), Shape: shape, Device: first.Device()}, func(to *tensor.Tensor) {
		for row, t := range rows {
			put(to.Select(0, row), t)
		}
	})
	return nil
}

// put copies to a view, and closes it.
func put(to, from *tensor.Tensor) {
	to.CopyFrom(from)
	to.Close()
}

// alike returns an ErrShape unless two tensors are alike but for their first skip dimensions.
func alike(t, first *tensor.Tensor, skip int) error {
	switch {
	case t.DType() != first.DType():
		return misshapen("%v where the first has %v", t.DType(), first.DType())
	case t.Device() != first.Device():
		return misshapen("on %v where the first is on %v", tensor.Place{Device: t.Device()},
			tensor.Place{Device: first.Device()})
	case t.Dims() != first.Dims() || !slices.Equal(t.Shape()[skip:], first.Shape()[skip:]):
		return misshapen("shape %v where the first has %v", t.Shape(), first.Shape())
	}
	return nil
}

// texts plans the two tensors of strings, or of bytes.
func (c *collator) texts(k Kind, rows []*tensor.Tensor) *Node {
	offsets := offsetsOf(rows)
	total := offsets[len(rows)]
	c.plan(Field{DType: tensor.Uint8, Shape: []int{int(total)}, Inner: true}, func(to *tensor.Tensor) {
		all := tensor.Data[uint8](to)
		for row, t := range rows {
			copy(all[offsets[row]:], tensor.Data[uint8](t))
		}
	})
	c.numbers(offsets)
	c.fields[len(c.fields)-1].Inner = true
	if k == Text {
		return &Node{Kind: Texts}
	}
	return &Node{Kind: BytesList}
}

// offsetsOf returns where each row begins when they follow each other, and where the last ends.
func offsetsOf(rows []*tensor.Tensor) []int64 {
	offsets := make([]int64, len(rows)+1)
	for row, t := range rows {
		offsets[row+1] = offsets[row] + int64(t.Dim(0))
	}
	return offsets
}

// numbers plans a tensor of int64.
func (c *collator) numbers(v []int64) {
	c.plan(Field{DType: tensor.Int64, Shape: []int{len(v)}},
		func(to *tensor.Tensor) { copy(tensor.Data[int64](to), v) })
}

// Differ says where the structure of a sample is not that of the first of its batch. The error
// wraps ErrShape.
func Differ(spec, first string) error {
	a, errA := Parse(spec)
	b, errB := Parse(first)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	return differ(nil, a, b)
}

func differ(p path, a, b *Node) error {
	switch {
	case a.Kind != b.Kind:
		return p.at(misshapen("%v where the first has %v", a.Kind, b.Kind))
	case a.Kind == Map && !slices.Equal(a.Keys, b.Keys):
		return p.at(misshapen("the keys %q where the first has %q", a.Keys, b.Keys))
	case len(a.Items) != len(b.Items):
		return p.at(misshapen("%d items where the first has %d", len(a.Items), len(b.Items)))
	}
	for i := range a.Items {
		var step any = i
		if a.Kind == Map {
			step = a.Keys[i]
		}
		if err := differ(append(p, step), a.Items[i], b.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
