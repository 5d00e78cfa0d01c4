package parquet

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"github.com/shoal-mp/shoal/data/row"
)

// A form is what a node becomes.
type form int

const (
	leafForm  form = iota
	groupForm      // a map of its fields
	listForm       // of its only field's only field
	mapForm        // of its only field's two fields
)

// A node is a part of the schema: a column, or some that belong together.
type node struct {
	name               string
	form               form
	optional, repeated bool
	fields             []*node

	column  int // of a leaf
	kind    parquet.Kind
	logical string // such as STRING or INT(8,false)
}

// maxDepth bounds groups in groups.
const maxDepth = 64

// schemaOf returns the wanted columns of a schema.
func schemaOf(s *parquet.Schema, wanted []row.Column) (*node, error) {
	column := 0
	root, err := nodeOf("", s, &column, 0)
	if err != nil {
		return nil, err
	}
	root.form = groupForm
	if len(wanted) == 0 {
		return root, root.check()
	}
	picked := &node{form: groupForm}
	for _, want := range wanted {
		field := root.field(want.Name)
		if field == nil {
			return nil, fmt.Errorf("%w: %q; the file has %s", row.ErrColumn, want.Name, root.names())
		}
		picked.fields = append(picked.fields, field)
	}
	return picked, picked.check()
}

// nodeOf reads a node; column is the number of the next leaf.
func nodeOf(name string, of parquet.Node, column *int, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: groups nest deeper than %d", ErrFormat, maxDepth)
	}
	n := &node{name: name, optional: of.Optional(), repeated: of.Repeated(), logical: logicalOf(of)}
	if of.Leaf() {
		n.form, n.column, n.kind = leafForm, *column, of.Type().Kind()
		*column++
		return n, nil
	}
	n.form = groupForm
	for _, f := range of.Fields() {
		field, err := nodeOf(f.Name(), f, column, depth+1)
		if err != nil {
			return nil, err
		}
		n.fields = append(n.fields, field)
	}
	if len(n.fields) == 1 && n.fields[0].repeated && n.fields[0].form == groupForm {
		switch inner := len(n.fields[0].fields); {
		case n.logical == "LIST" && inner == 1:
			n.form = listForm
		case strings.HasPrefix(n.logical, "MAP") && inner == 2:
			n.form = mapForm
		}
	}
	return n, nil
}

// logicalOf is what a node means, as far as it says.
func logicalOf(of parquet.Node) string {
	t := of.Type()
	if l := t.LogicalType(); l != nil && l.Value != nil {
		return l.String()
	}
	if c := t.ConvertedType(); c != nil {
		return converted[*c]
	}
	return ""
}

// converted are the meanings as older writers give them.
var converted = map[deprecated.ConvertedType]string{
	deprecated.UTF8: "STRING", deprecated.Enum: "ENUM", deprecated.Json: "JSON", deprecated.Decimal: "DECIMAL",
	deprecated.List: "LIST", deprecated.Map: "MAP", deprecated.MapKeyValue: "MAP",
	deprecated.Uint8: "INT(8,false)", deprecated.Uint16: "INT(16,false)", deprecated.Uint32: "INT(32,false)",
	deprecated.Uint64: "INT(64,false)",
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

// leaves adds those below a node, in their order.
func (n *node) leaves(all []*node) []*node {
	if n.form == leafForm {
		return append(all, n)
	}
	for _, f := range n.fields {
		all = f.leaves(all)
	}
	return all
}

// check refuses columns that have no form here.
func (n *node) check() error {
	leaves := n.leaves(nil)
	if len(leaves) == 0 {
		return fmt.Errorf("%w: no columns", ErrFormat)
	}
	for _, leaf := range leaves {
		if leaf.kind == parquet.Int96 || strings.HasPrefix(leaf.logical, "DECIMAL") {
			return fmt.Errorf("%w: %q is %s%v; leave it out by naming the columns that are wanted, or write it as float64 or int64",
				ErrKind, leaf.name, strings.TrimPrefix(leaf.logical+" ", " "), leaf.kind)
		}
	}
	return nil
}
