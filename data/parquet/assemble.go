package parquet

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/shoal-mp/shoal/tensor"
)

// A record is values of leaves that belong to one node: of a row, at first, then of parts of it.
// Each value has two levels: how much of what is optional or repeated on the way to it is there,
// and at which of the repeated ones it goes on.
type record map[int][]parquet.Value

// row puts a row together.
func (b *block) row(schema *node, i int) (map[string]any, error) {
	r := record{}
	for column, rows := range b.leaves {
		r[column] = rows[i]
	}
	v, err := schema.group(r, 0, 0)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// first is the first value of the first leaf below a node.
func (n *node) first(r record) (v parquet.Value, err error) {
	for n.form != leafForm {
		n = n.fields[0]
	}
	values := r[n.column]
	if len(values) == 0 {
		return v, fmt.Errorf("%w: a value of %q is missing", ErrFormat, n.name)
	}
	return values[0], nil
}

// value returns what a record has of a node. def and rep are the levels of what is around it.
func (n *node) value(r record, def, rep int) (any, error) {
	if !n.optional && !n.repeated {
		return n.present(r, def, rep)
	}
	first, err := n.first(r)
	if err != nil {
		return nil, err
	}
	there := first.DefinitionLevel() > def
	switch {
	case n.repeated:
		if n.form == leafForm {
			if t := n.tensor(r[n.column], there); t != nil {
				return t, nil
			}
		}
		return n.items(r, def, rep, there, n.present)
	case there:
		return n.present(r, def+1, rep)
	}
	return nil, nil
}

// present returns what a record has of a node that is there.
func (n *node) present(r record, def, rep int) (any, error) {
	switch n.form {
	case leafForm:
		values := r[n.column]
		if len(values) != 1 {
			return nil, fmt.Errorf("%w: %d values of %q where there is one", ErrFormat, len(values), n.name)
		}
		return n.scalar(values[0])
	case listForm:
		return n.list(r, def, rep)
	case mapForm:
		return n.pairs(r, def, rep)
	}
	return n.group(r, def, rep)
}

func (n *node) group(r record, def, rep int) (map[string]any, error) {
	all := make(map[string]any, len(n.fields))
	for _, f := range n.fields {
		v, err := f.value(r, def, rep)
		if err != nil {
			return nil, err
		}
		all[f.name] = v
	}
	return all, nil
}

// list returns the elements of a node that is a list: a tensor, if they are numbers that are all
// there.
func (n *node) list(r record, def, rep int) (any, error) {
	repeated := n.fields[0]
	element := repeated.fields[0]
	first, err := n.first(r)
	if err != nil {
		return nil, err
	}
	there := first.DefinitionLevel() > def
	if element.form == leafForm && !element.repeated {
		if t := element.tensor(r[element.column], there); t != nil {
			return t, nil
		}
	}
	return repeated.items(r, def, rep, there, element.value)
}

// items returns what item makes of each of the parts of a record that are repeated.
func (n *node) items(r record, def, rep int, there bool,
	item func(r record, def, rep int) (any, error)) ([]any, error) {
	all := []any{}
	if !there {
		return all, nil
	}
	parts, err := n.parts(r, rep+1)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		v, err := item(part, def+1, rep+1)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// parts cuts the values of each leaf where its node repeats.
func (n *node) parts(r record, rep int) (parts []record, err error) {
	for k, leaf := range n.leaves(nil) {
		at := 0
		for i, v := range r[leaf.column] {
			if i > 0 && v.RepetitionLevel() > rep {
				parts[at-1][leaf.column] = append(parts[at-1][leaf.column], v)
				continue
			}
			if k == 0 {
				parts = append(parts, record{})
			}
			if at == len(parts) {
				return nil, fmt.Errorf("%w: %q has more items than the columns beside it", ErrFormat, leaf.name)
			}
			parts[at][leaf.column] = []parquet.Value{v}
			at++
		}
		if at != len(parts) {
			return nil, fmt.Errorf("%w: %q has %d items, and the columns beside it %d", ErrFormat, leaf.name,
				at, len(parts))
		}
	}
	return parts, nil
}

// pairs returns a map, of which the keys are strings, or else a list of pairs.
func (n *node) pairs(r record, def, rep int) (any, error) {
	repeated := n.fields[0]
	first, err := n.first(r)
	if err != nil {
		return nil, err
	}
	key, value := repeated.fields[0], repeated.fields[1]
	named := map[string]any{}
	strings := true
	list, err := repeated.items(r, def, rep, first.DefinitionLevel() > def, func(r record, def, rep int) (any, error) {
		k, err := key.value(r, def, rep)
		if err != nil {
			return nil, err
		}
		v, err := value.value(r, def, rep)
		if name, ok := k.(string); ok {
			named[name] = v
		} else {
			strings = false
		}
		return []any{k, v}, err
	})
	if strings || err != nil {
		return named, err
	}
	return list, nil
}

// scalar returns a value.
func (n *node) scalar(v parquet.Value) (any, error) {
	if v.IsNull() {
		return nil, nil
	}
	switch n.kind {
	case parquet.Boolean:
		return v.Boolean(), nil
	case parquet.Int32:
		if n.unsigned() {
			return int64(v.Uint32()), nil
		}
		return int64(v.Int32()), nil
	case parquet.Int64:
		if n.unsigned() && v.Int64() < 0 {
			return nil, fmt.Errorf("%w: %d of %q does not fit int64", ErrKind, v.Uint64(), n.name)
		}
		return v.Int64(), nil
	case parquet.Float:
		return float64(v.Float()), nil
	case parquet.Double:
		return v.Double(), nil
	}
	return n.bytes(v.ByteArray())
}

func (n *node) bytes(b []byte) (any, error) {
	switch n.logical {
	case "STRING", "ENUM", "JSON":
		if !utf8.Valid(b) {
			return nil, fmt.Errorf("%w: %q is not UTF-8", ErrFormat, n.name)
		}
		return string(b), nil
	case "FLOAT16":
		if len(b) == 2 {
			return float64(tensor.F16(uint16(b[0]) | uint16(b[1])<<8).Float32()), nil
		}
	}
	return b, nil
}

func (n *node) unsigned() bool {
	return strings.HasPrefix(n.logical, "INT(") && strings.HasSuffix(n.logical, "false)")
}

// tensor returns the elements of a list, nil if they are no numbers, or one is missing.
func (n *node) tensor(values []parquet.Value, there bool) *tensor.Tensor {
	if !there {
		values = nil
	}
	for _, v := range values {
		if v.IsNull() {
			return nil
		}
	}
	switch n.kind {
	case parquet.Boolean:
		return tensorOf(values, parquet.Value.Boolean)
	case parquet.Int32, parquet.Int64:
		fits := true
		t := tensorOf(values, func(v parquet.Value) int64 {
			x, err := n.scalar(v)
			k, _ := x.(int64)
			fits = fits && err == nil
			return k
		})
		if fits {
			return t
		}
	case parquet.Float:
		return tensorOf(values, parquet.Value.Float)
	case parquet.Double:
		return tensorOf(values, parquet.Value.Double)
	}
	return nil
}

func tensorOf[T tensor.Elem](values []parquet.Value, of func(parquet.Value) T) *tensor.Tensor {
	if len(values) > math.MaxInt32 {
		return nil
	}
	all := make([]T, len(values))
	for i, v := range values {
		all[i] = of(v)
	}
	return tensor.FromSlice(all, len(all))
}
