package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// A Kind is the kind of a [Node]. It determines the number and the dtypes of the node's tensors.
type Kind byte

const (
	Tensor    Kind = 't' // one tensor, the value itself
	Ragged    Kind = 'r' // Depth tensors, a row with a length that varies within a batch; see Rule
	Int       Kind = 'i' // one int64 tensor without dimensions
	Float     Kind = 'f' // one float64 tensor without dimensions
	Bool      Kind = 'o' // one bool tensor without dimensions
	Text      Kind = 's' // one uint8 tensor
	Bytes     Kind = 'b' // one uint8 tensor
	Texts     Kind = 'S' // two tensors: all bytes, and int64 offsets including the end
	BytesList Kind = 'B' // two tensors, as for Texts
	None      Kind = 'n' // no tensor: nil
	Map       Kind = 'm' // the tensors of its Items, in the order of Keys
	List      Kind = 'l' // the tensors of its Items
	Tuple     Kind = 'u' // like List, for an array or a struct tagged as a tuple
)

// A Node describes the structure of a value or of one of its parts. [Parse] makes it from a
// description.
type Node struct {
	Kind  Kind
	Rule  int   // index of the rule of a Ragged
	Depth int   // of a Ragged: 1 for a row, 2 for a list of rows, and so on; see [list]
	Keys  []any // keys of a Map, string or int64
	Items []*Node
}

// countTensors returns the number of tensors of a leaf. ok is false if k is not the kind of a leaf.
func (k Kind) countTensors() (n int, ok bool) {
	switch k {
	case Tensor, Ragged, Int, Float, Bool, Text, Bytes: // a Ragged has more if its Depth is above 1
		return 1, true
	case Texts, BytesList:
		return 2, true
	case None:
		return 0, true
	}
	return 0, false
}

// Tensors returns the number of tensors of a leaf. It returns 0 for a Map, a List or a Tuple.
func (n *Node) Tensors() int {
	if n.Kind == Ragged {
		return n.Depth
	}
	count, _ := n.Kind.countTensors()
	return count
}

// Leaves calls f for all parts except Maps, Lists and Tuples, in the order of their tensors.
func (n *Node) Leaves(f func(leaf *Node)) {
	if n.Kind != Map && n.Kind != List && n.Kind != Tuple {
		f(n)
	}
	for _, item := range n.Items {
		item.Leaves(f)
	}
}

// Fixed reports whether the structure has at least one tensor and all its leaves have a fixed
// layout: numbers, bools, and tensors, provided that those keep their own layout.
func (n *Node) Fixed() bool {
	leaves, fixed := n.countLeaves()
	return fixed && leaves > 0
}

func (n *Node) countLeaves() (leaves int, fixed bool) {
	if n.Items == nil {
		return n.Tensors(), n.Kind == Tensor || n.Kind == Int || n.Kind == Float || n.Kind == Bool ||
			n.Kind == Map || n.Kind == List || n.Kind == Tuple
	}
	fixed = true
	for _, item := range n.Items {
		l, f := item.countLeaves()
		leaves, fixed = leaves+l, fixed && f
	}
	return leaves, fixed
}

// First returns the index of the first tensor that is a Tensor leaf or a ragged row, or -1 if there
// is none.
func (n *Node) First() int {
	at := 0
	if n.seekFirstTensor(&at) {
		return at
	}
	return -1
}

func (n *Node) seekFirstTensor(at *int) bool {
	if n.Kind == Tensor || n.Kind == Ragged && n.Depth == 1 {
		return true
	}
	for _, item := range n.Items {
		if item.seekFirstTensor(at) {
			return true
		}
	}
	*at += n.Tensors()
	return false
}

// Limits of a structure, so that a malicious description cannot exhaust the memory or the stack.
const (
	maxDepth = 64
	maxNodes = 1 << 20
)

// ErrSpec is wrapped by the error for a description that is invalid, or does not match its tensors.
var ErrSpec = errors.New("malformed description of a value")

// Spec returns the description of the structure, which [Parse] parses. Equal structures have
// equal descriptions.
func (n *Node) Spec() string { return string(n.appendSpec(nil)) }

func (n *Node) appendSpec(b []byte) []byte {
	b = append(b, byte(n.Kind))
	switch n.Kind {
	case Ragged:
		return appendCount(appendCount(b, n.Rule), n.Depth)
	case Map:
		b = appendCount(b, len(n.Keys))
		for _, k := range n.Keys {
			b = appendKey(b, k)
		}
	case List, Tuple:
		b = appendCount(b, len(n.Items))
	}
	for _, item := range n.Items {
		b = item.appendSpec(b)
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

// Parse parses a description. It returns an error that wraps [ErrSpec] if the description is
// invalid, or has more than 64 levels or 2²⁰ parts.
func Parse(spec string) (*Node, error) {
	p := parser{rest: []byte(spec)}
	n, err := p.parseNode(0)
	if err == nil && len(p.rest) > 0 {
		err = fmt.Errorf("%w: %d extra bytes at the end", ErrSpec, len(p.rest))
	}
	return n, err
}

// A parser parses a description. rest is the part that is left, and nodes the number of nodes
// so far.
type parser struct {
	rest  []byte
	nodes int
}

func (p *parser) parseNode(depth int) (*Node, error) {
	if p.nodes++; depth > maxDepth || p.nodes > maxNodes {
		return nil, fmt.Errorf("%w: more than %d levels or %d parts", ErrSpec, maxDepth, maxNodes)
	}
	if len(p.rest) == 0 {
		return nil, fmt.Errorf("%w: truncated", ErrSpec)
	}
	n := &Node{Kind: Kind(p.rest[0])}
	p.rest = p.rest[1:]
	if _, leaf := n.Kind.countTensors(); leaf {
		if n.Kind != Ragged {
			return n, nil
		}
		rule, err1 := p.parseNumber()
		depth, err2 := p.parseNumber()
		n.Rule, n.Depth = rule, depth
		if err2 == nil && (depth < 1 || depth > maxDepth) {
			err2 = fmt.Errorf("%w: depth %d of a ragged row", ErrSpec, depth)
		}
		return n, errors.Join(err1, err2)
	}
	if n.Kind != Map && n.Kind != List && n.Kind != Tuple {
		return nil, fmt.Errorf("%w: unknown kind %q", ErrSpec, byte(n.Kind))
	}
	return n, p.parseItems(n, depth)
}

// parseItems parses the keys and the items of n, a Map, a List or a Tuple, at the given depth,
// into n.
func (p *parser) parseItems(n *Node, depth int) error {
	count, err := p.parseNumber()
	if err != nil {
		return err
	}
	for k := 0; n.Kind == Map && k < count; k++ {
		key, err := p.parseKey()
		if err != nil {
			return err
		}
		n.Keys = append(n.Keys, key)
	}
	for range count {
		item, err := p.parseNode(depth + 1)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, item)
	}
	return nil
}

// parseNumber parses a count or the index of a rule, at most maxNodes. The error wraps
// [ErrSpec].
func (p *parser) parseNumber() (int, error) {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 || v > maxNodes {
		return 0, fmt.Errorf("%w: invalid number", ErrSpec)
	}
	p.rest = p.rest[n:]
	return int(v), nil
}

func (p *parser) parseKey() (any, error) {
	if len(p.rest) == 0 {
		return nil, fmt.Errorf("%w: truncated", ErrSpec)
	}
	kind := p.rest[0]
	p.rest = p.rest[1:]
	switch kind {
	case 's':
		n, err := p.parseNumber()
		if err != nil || n > len(p.rest) {
			return nil, fmt.Errorf("%w: key length %d out of range", ErrSpec, n)
		}
		s := string(p.rest[:n])
		p.rest = p.rest[n:]
		return s, nil
	case 'i':
		v, n := binary.Varint(p.rest)
		if n <= 0 {
			return nil, fmt.Errorf("%w: key is not a number", ErrSpec)
		}
		p.rest = p.rest[n:]
		return v, nil
	}
	return nil, fmt.Errorf("%w: unknown key kind %q", ErrSpec, kind)
}

// A path is the location of a part within a value, from the outside in.
type path []any // a string or int64 is a map key, an int is a list index

// String formats the path for errors: "boxes"[2].
func (p path) String() string { return p.formatSteps(strconv.Quote) }

// rulePath formats the path as used by rules: boxes[2].
func (p path) rulePath() string { return p.formatSteps(func(s string) string { return s }) }

func (p path) formatSteps(key func(string) string) string {
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

// wrapError returns an error that wraps err and names the path. It returns err itself if the
// path is empty.
func (p path) wrapError(err error) error {
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
