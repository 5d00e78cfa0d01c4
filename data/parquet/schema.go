package parquet

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/shoal-mp/shoal/data/row"
)

// A form is the shape of a node's values.
type form int

const (
	leafForm  form = iota
	groupForm      // a map of its fields
	listForm       // a list; the element is the only field of the node's only field
	mapForm        // a map; key and value are the two fields of the node's only field
)

// A kind is the type of a leaf's values.
type kind int

const (
	boolKind    kind = iota
	intKind          // integers, dates and times that fit int64
	uint32Kind       // unsigned integers of at most 32 bits
	uint64Kind       // unsigned integers of 64 bits
	float16Kind      // half-precision floats, two bytes each
	float32Kind
	float64Kind
	textKind
	uuidKind // 16 bytes, converted to a string
	bytesKind
)

// hasLength reports whether the values of a kind are encoded with a length.
func (k kind) hasLength() bool { return k >= textKind }

// A node is a column, or a group of columns, of the schema.
type node struct {
	name               string
	form               form
	optional, repeated bool
	fields             []*node

	column         int // for leaves: index of the column in the file
	physical       parquet.Type
	kind           kind
	unread         string // for leaves: name of the type, if it is not supported
	maxDef, maxRep uint8  // for leaves: maximum levels

	cells []int // indices in a record of the leaves at or below the node
}

// maxDepth is the maximum depth of nested groups.
const maxDepth = 64

// schemaOf returns the root of a schema with the wanted columns, in their order, or with all
// columns if wanted is empty. The error wraps [row.ErrColumn] if a column is missing, [ErrKind]
// if the type of a column is not supported, or [ErrFormat].
func schemaOf(s *schema.Schema, wanted []row.Column) (*node, error) {
	column := 0
	root, err := nodeOf(s.Root(), &column, 0, 0, 0)
	if err != nil {
		return nil, err
	}
	root.form, root.optional, root.repeated = groupForm, false, false
	if len(wanted) > 0 {
		picked := &node{form: groupForm}
		seen := map[string]bool{}
		for _, want := range wanted {
			field := root.field(want.Name)
			if field == nil {
				return nil, fmt.Errorf("%w: %q; the file has %s", row.ErrColumn, want.Name, root.names())
			}
			if !seen[want.Name] {
				seen[want.Name] = true
				picked.fields = append(picked.fields, field)
			}
		}
		root = picked
	}
	leaves := root.appendLeaves(nil)
	cells := 0
	root.assignIndices(&cells)
	if len(leaves) == 0 {
		return nil, fmt.Errorf("%w: no columns", ErrFormat)
	}
	for _, leaf := range leaves {
		if leaf.unread != "" {
			return nil, fmt.Errorf(
				"%w: %q is %s; leave it out by naming the columns that are wanted, or write it as float64 or int64",
				ErrKind, leaf.name, leaf.unread)
		}
	}
	return root, nil
}

// nodeOf converts a node of the library's schema. column is the index of the next leaf, which
// nodeOf advances; def and rep are the levels of the enclosing group. The error wraps
// [ErrFormat].
func nodeOf(of schema.Node, column *int, depth int, def, rep uint8) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: groups nest deeper than %d", ErrFormat, maxDepth)
	}
	n := &node{name: of.Name()}
	if depth > 0 { // the repetition of the root has no meaning
		n.optional = of.RepetitionType() == parquet.Repetitions.Optional
		n.repeated = of.RepetitionType() == parquet.Repetitions.Repeated
	}
	if n.optional || n.repeated {
		def++
	}
	if n.repeated {
		rep++
	}
	if leaf, ok := of.(*schema.PrimitiveNode); ok {
		n.form, n.column, n.maxDef, n.maxRep = leafForm, *column, def, rep
		n.physical = leaf.PhysicalType()
		n.kind, n.unread = kindOf(leaf)
		*column++
		return n, nil
	}
	group, ok := of.(*schema.GroupNode)
	if !ok {
		return nil, fmt.Errorf("%w: unexpected schema element %T", ErrFormat, of)
	}
	n.form = groupForm
	for i := range group.NumFields() {
		field, err := nodeOf(group.Field(i), column, depth+1, def, rep)
		if err != nil {
			return nil, err
		}
		n.fields = append(n.fields, field)
	}
	if len(n.fields) == 1 && n.fields[0].repeated && n.fields[0].form == groupForm {
		inner := len(n.fields[0].fields)
		switch of.LogicalType().(type) {
		case schema.ListLogicalType:
			if inner == 1 {
				n.form = listForm
			}
		case schema.MapLogicalType:
			if inner == 2 {
				n.form = mapForm
			}
		}
	}
	if _, ok := of.LogicalType().(schema.VariantLogicalType); ok {
		for _, leaf := range n.appendLeaves(nil) {
			leaf.unread = "a VARIANT"
		}
	}
	return n, nil
}

// kindOf returns the kind of a leaf's values. unread is "" if the type is supported, and the
// type's name otherwise.
func kindOf(leaf *schema.PrimitiveNode) (k kind, unread string) {
	physical, logical := leaf.PhysicalType(), leaf.LogicalType()
	unread = fmt.Sprintf("%v of type %v", logical, physical)
	switch t := logical.(type) {
	case nil, schema.NoLogicalType, schema.NullLogicalType:
		switch physical {
		case parquet.Types.Boolean:
			return boolKind, ""
		case parquet.Types.Int32, parquet.Types.Int64:
			return intKind, ""
		case parquet.Types.Float:
			return float32Kind, ""
		case parquet.Types.Double:
			return float64Kind, ""
		case parquet.Types.ByteArray, parquet.Types.FixedLenByteArray:
			return bytesKind, ""
		}
		return 0, physical.String()
	case schema.IntLogicalType:
		switch {
		case physical != parquet.Types.Int32 && physical != parquet.Types.Int64:
			return 0, unread
		case t.IsSigned():
			return intKind, ""
		case physical == parquet.Types.Int32:
			return uint32Kind, ""
		}
		return uint64Kind, ""
	case schema.DateLogicalType, schema.TimeLogicalType, schema.TimestampLogicalType:
		if physical == parquet.Types.Int32 || physical == parquet.Types.Int64 {
			return intKind, ""
		}
	case schema.StringLogicalType, schema.EnumLogicalType, schema.JSONLogicalType:
		if physical == parquet.Types.ByteArray || physical == parquet.Types.FixedLenByteArray {
			return textKind, ""
		}
	case schema.UUIDLogicalType:
		if physical == parquet.Types.FixedLenByteArray && leaf.TypeLength() == 16 {
			return uuidKind, ""
		}
	case schema.Float16LogicalType:
		if physical == parquet.Types.FixedLenByteArray && leaf.TypeLength() == 2 {
			return float16Kind, ""
		}
	}
	return 0, unread
}

// assignIndices sets the cells of n and of the nodes below it. The leaves get consecutive
// indices in a record from *next on, which it advances.
func (n *node) assignIndices(next *int) {
	n.cells = nil
	if n.form == leafForm {
		n.cells = []int{*next}
		*next++
		return
	}
	for _, f := range n.fields {
		f.assignIndices(next)
		n.cells = append(n.cells, f.cells...)
	}
}

func (n *node) field(name string) *node {
	for _, f := range n.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

func (n *node) names() string {
	var all []string
	for _, f := range n.fields {
		all = append(all, fmt.Sprintf("%q", f.name))
	}
	return strings.Join(all, ", ")
}

// appendLeaves appends the leaves at or below n to all, in schema order, and returns the
// extended slice.
func (n *node) appendLeaves(all []*node) []*node {
	if n.form == leafForm {
		return append(all, n)
	}
	for _, f := range n.fields {
		all = f.appendLeaves(all)
	}
	return all
}
