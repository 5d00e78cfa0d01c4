package npy

import (
	"strconv"
	"strings"
)

// literal parses the Python literals that headers contain: dicts, tuples, lists, strings,
// integers and bools. rest is the text that has not been parsed. Its errors wrap [ErrFormat].
type literal struct {
	rest  string
	depth int
}

func (p *literal) skipSpace() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// acceptByte skips space, and consumes the next character and returns true if it is c.
func (p *literal) acceptByte(c byte) bool {
	p.skipSpace()
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// parseDict parses a dict with string keys, which must extend to the end of the text. The values
// are strings, ints, bools, and []any for lists and tuples.
func (p *literal) parseDict() (map[string]any, error) {
	if !p.acceptByte('{') {
		return nil, malformed("the header is not a dict")
	}
	d := map[string]any{}
	for !p.acceptByte('}') {
		key, err := p.parseValue()
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if _, twice := d[name]; !ok || twice || !p.acceptByte(':') {
			return nil, malformed("the key %v of the header", key)
		}
		if d[name], err = p.parseValue(); err != nil {
			return nil, err
		}
		if !p.acceptByte(',') && !strings.HasPrefix(p.rest, "}") {
			return nil, malformed("the header goes on with %.20q", p.rest)
		}
	}
	if p.skipSpace(); p.rest != "" {
		return nil, malformed("the header ends with %.20q", p.rest)
	}
	return d, nil
}

// maxDepth is the maximum nesting depth of lists.
const maxDepth = 16

func (p *literal) parseValue() (any, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, malformed("the header nests deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	switch {
	case p.acceptByte('('):
		return p.parseItems(')')
	case p.acceptByte('['):
		return p.parseItems(']')
	case p.acceptByte('\''):
		return p.parseText('\'')
	case p.acceptByte('"'):
		return p.parseText('"')
	}
	end := strings.IndexAny(p.rest, " ,:)]}\n")
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	switch word {
	case "True", "False":
		return word == "True", nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(word, "L")) // Python 2 long
	if err != nil {
		return nil, malformed("%.20q in the header", word)
	}
	return n, nil
}

func (p *literal) parseItems(end byte) (any, error) {
	list := []any{}
	for !p.acceptByte(end) {
		v, err := p.parseValue()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if !p.acceptByte(',') && (p.rest == "" || p.rest[0] != end) {
			return nil, malformed("a list in the header goes on with %.20q", p.rest)
		}
	}
	return list, nil
}

// parseText parses a string up to the closing quote; the opening one has been consumed. Escapes
// are not supported, because dtype names need none.
func (p *literal) parseText(quote byte) (any, error) {
	s, rest, ok := strings.Cut(p.rest, string(quote))
	if !ok || strings.ContainsAny(s, "\\\n") {
		return nil, malformed("%.20q in the header", p.rest)
	}
	p.rest = rest
	return s, nil
}
