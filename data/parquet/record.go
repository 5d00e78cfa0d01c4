package parquet

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/shoal-mp/shoal/tensor"
)

// A cell is a cursor over the levels and values of one leaf in a record. See Note [Records].
type cell struct {
	leaf     *node
	n, at    int    // number of levels, and of consumed levels
	def, rep []byte // nil if the list is full
	full     bool
	width    int    // bytes of each integer
	data     []byte // remaining values
}

// parse splits a record into the cells of its leaves, which keep slices of it. It returns an
// error that wraps [ErrFormat] if the record is truncated.
func parse(leaves []*node, record []byte) ([]cell, error) {
	all := make([]cell, len(leaves))
	for i, leaf := range leaves {
		c := &all[i]
		rest, ok := c.parse(leaf, record)
		if !ok {
			return nil, fmt.Errorf("%w: record of %q is truncated", ErrFormat, leaf.name)
		}
		record = rest
	}
	return all, nil
}

func (c *cell) parse(leaf *node, b []byte) (rest []byte, ok bool) {
	*c = cell{leaf: leaf, n: 1, full: true}
	if leaf.maxDef > 0 {
		head, used := binary.Uvarint(b)
		if used <= 0 || head>>1 > math.MaxInt32 {
			return nil, false
		}
		b = b[used:]
		c.n, c.full = int(head>>1), head&1 == 1
	}
	values := c.n
	if !c.full {
		if len(b) < c.n {
			return nil, false
		}
		c.def, b = b[:c.n], b[c.n:]
		if leaf.maxRep > 0 {
			if len(b) < c.n {
				return nil, false
			}
			c.rep, b = b[:c.n], b[c.n:]
		}
		values = 0
		for _, d := range c.def {
			if d == leaf.maxDef {
				values++
			}
		}
	}
	size := values
	switch leaf.kind {
	case intKind, uint32Kind, uint64Kind:
		if values == 0 {
			break
		}
		if len(b) == 0 {
			return nil, false
		}
		c.width, b = int(b[0]), b[1:]
		size = values * c.width
	case float16Kind:
		size = values * 2
	case float32Kind:
		size = values * 4
	case float64Kind:
		size = values * 8
	case textKind, uuidKind, bytesKind:
		all, used := binary.Uvarint(b)
		if used <= 0 || all > uint64(len(b)) {
			return nil, false
		}
		b = b[used:]
		size = int(all)
	}
	if len(b) < size {
		return nil, false
	}
	c.data = b[:size]
	return b[size:], true
}

// definitionLevel returns the definition level at the cursor. It equals c.leaf.maxDef if there
// is a value. The error wraps [ErrFormat] at the end of the cell.
func (c *cell) definitionLevel() (level int, err error) {
	switch {
	case c.at == c.n:
		return 0, fmt.Errorf("%w: %q has fewer items than its sibling columns", ErrFormat, c.leaf.name)
	case c.def == nil:
		return int(c.leaf.maxDef), nil
	}
	return int(c.def[c.at]), nil
}

// continuesList reports whether the level at the cursor continues a list at repetition level
// rep. It is false at the end of the cell.
func (c *cell) continuesList(rep int) bool {
	if c.at == c.n {
		return false
	}
	level := int(c.leaf.maxRep)
	switch {
	case c.at == 0:
		level = 0
	case c.rep != nil:
		level = int(c.rep[c.at])
	}
	return level >= rep
}

// skipLevel consumes a level without a value. It returns an error that wraps [ErrFormat] if there
// is a value, or if no level is left.
func (c *cell) skipLevel() error {
	d, err := c.definitionLevel()
	if err == nil && d == int(c.leaf.maxDef) {
		err = fmt.Errorf("%w: %q has a value where its sibling columns have none", ErrFormat, c.leaf.name)
	}
	c.at++
	return err
}

// A record holds the cells of a row, one for each leaf. The methods that consume values move
// their cursors.
type record []cell

// assembleRow converts a record to the value of the row, by the names of the columns. It
// consumes r. The error wraps [ErrFormat] if the columns contradict each other, or [ErrKind] if
// an integer does not fit int64.
func assembleRow(root *node, r record) (map[string]any, error) {
	v, err := root.consumeGroup(r, 0, 0)
	if err != nil {
		return nil, err
	}
	for i := range r {
		if c := &r[i]; c.at != c.n {
			return nil, fmt.Errorf("%w: %q has more items than its sibling columns", ErrFormat, c.leaf.name)
		}
	}
	return v, nil
}

// isAbsent reports whether the first leaf below n has a definition level of at most def, which
// means that n is missing or empty within its group. If so, it consumes one level of each leaf
// below n. The error wraps [ErrFormat] if another leaf has a value.
func (n *node) isAbsent(r record, def int) (bool, error) {
	d, err := r[n.cells[0]].definitionLevel()
	if err != nil || d > def {
		return false, err
	}
	for _, k := range n.cells {
		if err := r[k].skipLevel(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// consumeValue consumes one value of n and returns it; the value is nil if n is optional and
// missing. def and rep are the levels of the enclosing group. Errors are as with assembleRow.
func (n *node) consumeValue(r record, def, rep int) (any, error) {
	switch {
	case n.repeated:
		if n.form == leafForm {
			t, err := n.consumeTensor(r, def, rep+1)
			if t != nil || err != nil {
				return t, err
			}
		}
		return n.consumeItems(r, def, rep, n.consumePresent)
	case n.optional:
		absent, err := n.isAbsent(r, def)
		if absent || err != nil {
			return nil, err
		}
		return n.consumePresent(r, def+1, rep)
	}
	return n.consumePresent(r, def, rep)
}

// consumePresent consumes a value of n that is not missing. def and rep are the levels at n, its
// own included. Errors are as with assembleRow.
func (n *node) consumePresent(r record, def, rep int) (any, error) {
	switch n.form {
	case leafForm:
		c := &r[n.cells[0]]
		d, err := c.definitionLevel()
		if err == nil && d != int(n.maxDef) {
			err = fmt.Errorf("%w: %q has no value where its sibling columns have one", ErrFormat, n.name)
		}
		if err != nil {
			return nil, err
		}
		c.at++
		return c.consumeScalar()
	case listForm:
		return n.consumeList(r, def, rep)
	case mapForm:
		return n.consumePairs(r, def, rep)
	}
	return n.consumeGroup(r, def, rep)
}

func (n *node) consumeGroup(r record, def, rep int) (map[string]any, error) {
	all := make(map[string]any, len(n.fields))
	for _, f := range n.fields {
		v, err := f.consumeValue(r, def, rep)
		if err != nil {
			return nil, err
		}
		all[f.name] = v
	}
	return all, nil
}

// consumeList consumes the elements of a list. The result is a [*tensor.Tensor] if the elements
// are numbers and none is missing, and a []any otherwise. Errors are as with assembleRow.
func (n *node) consumeList(r record, def, rep int) (any, error) {
	repeated := n.fields[0]
	element := repeated.fields[0]
	if element.form == leafForm && !element.repeated {
		t, err := element.consumeTensor(r, def, rep+1)
		if t != nil || err != nil {
			return t, err
		}
	}
	return repeated.consumeItems(r, def, rep, element.consumeValue)
}

// consumeItems consumes the elements of the repeated node n by calling item for each, and
// returns the results, which are empty but not nil for an empty list. def and rep are the levels
// of the enclosing group. The error wraps [ErrFormat], or is the error of item.
func (n *node) consumeItems(r record, def, rep int, item func(r record, def, rep int) (any, error)) ([]any, error) {
	all := []any{}
	absent, err := n.isAbsent(r, def)
	if absent || err != nil {
		return all, err
	}
	for {
		v, err := item(r, def+1, rep+1)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		more := r[n.cells[0]].continuesList(rep + 1)
		for _, k := range n.cells[1:] {
			if r[k].continuesList(rep+1) != more {
				return nil, fmt.Errorf("%w: %q has another number of items than its sibling columns", ErrFormat,
					r[k].leaf.name)
			}
		}
		if !more {
			return all, nil
		}
	}
}

// consumePairs consumes a map. The result is a map[string]any if all keys are strings, and a
// list of pairs otherwise, each a []any of a key and a value.
func (n *node) consumePairs(r record, def, rep int) (any, error) {
	repeated := n.fields[0]
	key, value := repeated.fields[0], repeated.fields[1]
	named := map[string]any{}
	texts := true
	list, err := repeated.consumeItems(r, def, rep, func(r record, def, rep int) (any, error) {
		k, err := key.consumeValue(r, def, rep)
		if err != nil {
			return nil, err
		}
		v, err := value.consumeValue(r, def, rep)
		if name, ok := k.(string); ok {
			named[name] = v
		} else {
			texts = false
		}
		return []any{k, v}, err
	})
	if texts || err != nil {
		return named, err
	}
	return list, nil
}

// consumeTensor consumes the elements of a list with n as its only leaf. It returns nil, nil and
// consumes nothing if they are not numbers, if one is missing, or if an unsigned integer does
// not fit int64. def is the definition level of the list, and rep the repetition level of its
// elements.
func (n *node) consumeTensor(r record, def, rep int) (*tensor.Tensor, error) {
	c := &r[n.cells[0]]
	if n.kind.hasLength() {
		return nil, nil
	}
	d, err := c.definitionLevel()
	if err != nil {
		return nil, err
	}
	if d <= def {
		c.at++
		return c.consumeNumbers(0), nil
	}
	count := c.n - c.at
	if !c.full {
		for count = 1; c.at+count < c.n && (c.rep == nil || int(c.rep[c.at+count]) >= rep); count++ {
		}
		for _, d := range c.def[c.at : c.at+count] {
			if d != n.maxDef {
				return nil, nil
			}
		}
	}
	if n.kind == uint64Kind && c.hasNegative(count) {
		return nil, nil
	}
	c.at += count
	return c.consumeNumbers(count), nil
}

// hasNegative reports whether one of the next n integers is negative. It consumes nothing. The
// cell must have so many integers.
func (c *cell) hasNegative(n int) bool {
	data := c.data
	for range n {
		v := decodeInteger(data, c.width)
		if v < 0 {
			return true
		}
		data = data[c.width:]
	}
	return false
}

// consumeNumbers consumes n numbers, which the cell must have, and returns them as a tensor of
// one dimension. Integers become Int64.
func (c *cell) consumeNumbers(n int) *tensor.Tensor {
	switch c.leaf.kind {
	case boolKind:
		return consumeTyped(c, n, 1, func(b []byte) bool { return b[0] != 0 })
	case float16Kind:
		return consumeTyped(c, n, 2, func(b []byte) tensor.F16 { return tensor.F16(binary.LittleEndian.Uint16(b)) })
	case float32Kind:
		return consumeTyped(c, n, 4, func(b []byte) float32 {
			return math.Float32frombits(binary.LittleEndian.Uint32(b))
		})
	case float64Kind:
		return consumeTyped(c, n, 8, func(b []byte) float64 {
			return math.Float64frombits(binary.LittleEndian.Uint64(b))
		})
	}
	all := make([]int64, n)
	data := c.data[:n*c.width]
	c.data = c.data[n*c.width:]
	switch c.width {
	case 1:
		for i := range all {
			all[i] = int64(int8(data[i]))
		}
	case 2:
		for i := range all {
			all[i] = int64(int16(binary.LittleEndian.Uint16(data[2*i:])))
		}
	case 4:
		for i := range all {
			all[i] = int64(int32(binary.LittleEndian.Uint32(data[4*i:])))
		}
	case 8:
		for i := range all {
			all[i] = int64(binary.LittleEndian.Uint64(data[8*i:]))
		}
	}
	return tensor.FromSlice(all, n)
}

func consumeTyped[T tensor.Elem](c *cell, n, width int, decode func([]byte) T) *tensor.Tensor {
	all := make([]T, n)
	data := c.data[:n*width]
	for i := range all {
		all[i] = decode(data[i*width:])
	}
	c.data = c.data[n*width:]
	return tensor.FromSlice(all, n)
}

// decodeInteger decodes the little-endian integer of width bytes (1, 2, 4 or 8) at the start of
// b.
func decodeInteger(b []byte, width int) int64 {
	switch width {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// consumeScalar consumes one value, which the cell must have: a bool, int64, float64, string or
// []byte. The error wraps [ErrKind] if an integer does not fit int64, or [ErrFormat] if a string
// is not UTF-8.
func (c *cell) consumeScalar() (any, error) {
	data := c.data
	switch c.leaf.kind {
	case boolKind:
		c.data = data[1:]
		return data[0] != 0, nil
	case intKind, uint32Kind, uint64Kind:
		v := decodeInteger(data, c.width)
		c.data = data[c.width:]
		if v < 0 && c.leaf.kind == uint64Kind {
			return nil, fmt.Errorf("%w: %d of %q does not fit int64", ErrKind, uint64(v), c.leaf.name)
		}
		return v, nil
	case float16Kind:
		c.data = data[2:]
		return float64(tensor.F16(binary.LittleEndian.Uint16(data)).Float32()), nil
	case float32Kind:
		c.data = data[4:]
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(data))), nil
	case float64Kind:
		c.data = data[8:]
		return math.Float64frombits(binary.LittleEndian.Uint64(data)), nil
	}
	size, used := binary.Uvarint(data)
	b := data[used : used+int(size)]
	c.data = data[used+int(size):]
	switch c.leaf.kind {
	case textKind:
		if !utf8.Valid(b) {
			return nil, fmt.Errorf("%w: %q is not UTF-8", ErrFormat, c.leaf.name)
		}
		return string(b), nil
	case uuidKind:
		s := hex.EncodeToString(b)
		return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:], nil
	}
	return append([]byte{}, b...), nil
}
