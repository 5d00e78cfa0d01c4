package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// A Kind says what a Node stands for, and which tensors make it.
type Kind byte

const (
	Tensor    Kind = 't' // one tensor, itself
	Ragged    Kind = 'r' // one tensor, whose rows in a batch differ in length; see Rule
	Int       Kind = 'i' // one of int64, without dimensions
	Float     Kind = 'f' // one of float64, without dimensions
	Bool      Kind = 'o' // one of bool, without dimensions
	Text      Kind = 's' // one of uint8
	Bytes     Kind = 'b' // one of uint8
	Texts     Kind = 'S' // two: all bytes, and the int64 offsets at which they begin, and the last ends
	BytesList Kind = 'B' // two, likewise
	None      Kind = 'n' // none: a nil
	Map       Kind = 'm' // those of its Items, in the order of Keys
	List      Kind = 'l' // those of its Items
	Tuple     Kind = 'u' // likewise: an array, or a struct with the tag
)

// A Node is the structure of a value.
type Node struct {
	Kind  Kind
	Rule  int   // number of the rule of a Ragged
	Keys  []any // string or int64, of a Map
	Items []*Node
}

// tensors returns how many tensors make what a leaf is, and whether there is such a leaf.
func (k Kind) tensors() (n int, ok bool) {
	switch k {
	case Tensor, Ragged, Int, Float, Bool, Text, Bytes:
		return 1, true
	case Texts, BytesList:
		return 2, true
	case None:
		return 0, true
	}
	return 0, false
}

// Tensors returns how many tensors make what a leaf is; none a Map, a List or a Tuple.
func (k Kind) Tensors() int {
	n, _ := k.tensors()
	return n
}

// Leaves calls f for all parts that are no Map, List or Tuple, in the order of their tensors.
func (n *Node) Leaves(f func(leaf *Node)) {
	if n.Kind != Map && n.Kind != List && n.Kind != Tuple {
		f(n)
	}
	for _, item := range n.Items {
		item.Leaves(f)
	}
}

// Fixed reports whether all values of this structure have tensors of one layout, as far as their
// own tensors have, and at least one.
func (n *Node) Fixed() bool {
	leaves, fixed := n.count()
	return fixed && leaves > 0
}

func (n *Node) count() (leaves int, fixed bool) {
	if n.Items == nil {
		return n.Kind.Tensors(), n.Kind == Tensor || n.Kind == Int || n.Kind == Float || n.Kind == Bool ||
			n.Kind == Map || n.Kind == List || n.Kind == Tuple
	}
	fixed = true
	for _, item := range n.Items {
		l, f := item.count()
		leaves, fixed = leaves+l, fixed && f
	}
	return leaves, fixed
}

// First returns the number of the first tensor that is one of the value's own, -1 if there is none.
func (n *Node) First() int {
	at := 0
	if n.first(&at) {
		return at
	}
	return -1
}

func (n *Node) first(at *int) bool {
	if n.Kind == Tensor || n.Kind == Ragged {
		return true
	}
	for _, item := range n.Items {
		if item.first(at) {
			return true
		}
	}
	*at += n.Kind.Tensors()
	return false
}

// What a structure may have, so that one that came from elsewhere does not take all memory or
// stack.
const (
	maxDepth = 64
	maxNodes = 1 << 20
)

// ErrSpec is wrapped where a description is none, or does not go with its tensors.
var ErrSpec = errors.New("not the description of a value")

// Spec returns the description of a structure. Equal structures have equal ones.
func (n *Node) Spec() string { return string(n.append(nil)) }

func (n *Node) append(b []byte) []byte {
	b = append(b, byte(n.Kind))
	switch n.Kind {
	case Ragged:
		return appendCount(b, n.Rule)
	case Map:
		b = appendCount(b, len(n.Keys))
		for _, k := range n.Keys {
			b = appendKey(b, k)
		}
	case List, Tuple:
		b = appendCount(b, len(n.Items))
	}
	for _, item := range n.Items {
		b = item.append(b)
	}
	return b
}

func appendCount(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

func appendKey(b []byte, k any) []byte {
	if s, ok := k.(string); ok {
		return append(appendCount(append(b, 's'), len(s)), s...)
	}
	return binary.AppendVarint(append(b, 'i'), k.(int64))
}

// Parse returns the structure that a description describes. The error wraps ErrSpec.
func Parse(spec string) (*Node, error) {
	p := parser{rest: []byte(spec)}
	n, err := p.node(0)
	if err == nil && len(p.rest) > 0 {
		err = fmt.Errorf("%w: %d bytes after its end", ErrSpec, len(p.rest))
	}
	return n, err
}

// A parser reads a description.
type parser struct {
	rest  []byte
	nodes int
}

func (p *parser) node(depth int) (*Node, error) {
	if p.nodes++; depth > maxDepth || p.nodes > maxNodes {
		return nil, fmt.Errorf("%w: more than %d levels or %d parts", ErrSpec, maxDepth, maxNodes)
	}
	if len(p.rest) == 0 {
		return nil, fmt.Errorf("%w: it ends early", ErrSpec)
	}
	n := &Node{Kind: Kind(p.rest[0])}
	p.rest = p.rest[1:]
	if _, leaf := n.Kind.tensors(); leaf {
		if n.Kind != Ragged {
			return n, nil
		}
		rule, err := p.number()
		n.Rule = rule
		return n, err
	}
	if n.Kind != Map && n.Kind != List && n.Kind != Tuple {
		return nil, fmt.Errorf("%w: a part of kind %q", ErrSpec, byte(n.Kind))
	}
	return n, p.items(n, depth)
}

// items reads the keys and the items of a Map, a List or a Tuple.
func (p *parser) items(n *Node, depth int) error {
	count, err := p.number()
	if err != nil {
		return err
	}
	for k := 0; n.Kind == Map && k < count; k++ {
		key, err := p.key()
		if err != nil {
			return err
		}
		n.Keys = append(n.Keys, key)
	}
	for range count {
		item, err := p.node(depth + 1)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, item)
	}
	return nil
}

// number reads a count, which has as many bytes behind it at least, or the number of a rule.
func (p *parser) number() (int, error) {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 || v > maxNodes {
		return 0, fmt.Errorf("%w: a number in it is none", ErrSpec)
	}
	p.rest = p.rest[n:]
	return int(v), nil
}

func (p *parser) key() (any, error) {
	if len(p.rest) == 0 {
		return nil, fmt.Errorf("%w: it ends early", ErrSpec)
	}
	kind := p.rest[0]
	p.rest = p.rest[1:]
	switch kind {
	case 's':
		n, err := p.number()
		if err != nil || n > len(p.rest) {
			return nil, fmt.Errorf("%w: a key of %d bytes", ErrSpec, n)
		}
		s := string(p.rest[:n])
		p.rest = p.rest[n:]
		return s, nil
	case 'i':
		v, n := binary.Varint(p.rest)
		if n <= 0 {
			return nil, fmt.Errorf("%w: a key that is no number", ErrSpec)
		}
		p.rest = p.rest[n:]
		return v, nil
	}
	return nil, fmt.Errorf("%w: a key of kind %q", ErrSpec, kind)
}

// A path is where in a value something is: keys and places, from the outside.
type path []any // string and int64 are keys, int is a place in a list

// String returns the path as errors show it: "boxes"[2].
func (p path) String() string { return p.text(strconv.Quote) }

// plain returns the path as rules name it: boxes[2].
func (p path) plain() string { return p.text(func(s string) string { return s }) }

func (p path) text(key func(string) string) string {
	var b []byte
	for i, step := range p {
		if place, ok := step.(int); ok {
			b = fmt.Appendf(b, "[%d]", place)
			continue
		}
		if i > 0 {
			b = append(b, '.')
		}
		if s, ok := step.(string); ok {
			b = append(b, key(s)...)
		} else {
			b = fmt.Append(b, step)
		}
	}
	return string(b)
}

// at says where an error is.
func (p path) at(err error) error {
	if len(p) == 0 {
		return err
	}
	return fmt.Errorf("field %v: %w", p, err)
}

// Tensors returns the description of a list of n tensors.
func Tensors(n int) string {
	b := appendCount([]byte{byte(List)}, n)
	for range n {
		b = append(b, byte(Tensor))
	}
	return string(b)
}
