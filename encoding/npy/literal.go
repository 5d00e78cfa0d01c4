package npy

import (
	"strconv"
	"strings"
)

// A literal reads the few literals of Python that are in headers: dicts, tuples, lists, text, whole
// numbers and bools.
type literal struct {
	rest  string
	depth int
}

func (p *literal) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// accept takes the next character if it is c.
func (p *literal) accept(c byte) bool {
	p.space()
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// dict reads a dict with keys of text, and nothing after it.
func (p *literal) dict() (map[string]any, error) {
	if !p.accept('{') {
		return nil, malformed("the header is no dict")
	}
	d := map[string]any{}
	for !p.accept('}') {
		key, err := p.value()
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if _, twice := d[name]; !ok || twice || !p.accept(':') {
			return nil, malformed("the key %v of the header", key)
		}
		if d[name], err = p.value(); err != nil {
			return nil, err
		}
		if !p.accept(',') && !strings.HasPrefix(p.rest, "}") {
			return nil, malformed("the header goes on with %.20q", p.rest)
		}
	}
	if p.space(); p.rest != "" {
		return nil, malformed("the header ends with %.20q", p.rest)
	}
	return d, nil
}

// maxDepth bounds lists in lists.
const maxDepth = 16

func (p *literal) value() (any, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, malformed("the header nests deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	switch {
	case p.accept('('):
		return p.items(')')
	case p.accept('['):
		return p.items(']')
	case p.accept('\''):
		return p.text('\'')
	case p.accept('"'):
		return p.text('"')
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
	n, err := strconv.Atoi(strings.TrimSuffix(word, "L")) // Python 2 has longs
	if err != nil {
		return nil, malformed("%.20q in the header", word)
	}
	return n, nil
}

func (p *literal) items(end byte) (any, error) {
	list := []any{}
	for !p.accept(end) {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if !p.accept(',') && (p.rest == "" || p.rest[0] != end) {
			return nil, malformed("a list in the header goes on with %.20q", p.rest)
		}
	}
	return list, nil
}

// text reads up to a quote. numpy's names of dtypes have nothing to be escaped.
func (p *literal) text(quote byte) (any, error) {
	s, rest, ok := strings.Cut(p.rest, string(quote))
	if !ok || strings.ContainsAny(s, "\\\n") {
		return nil, malformed("%.20q in the header", p.rest)
	}
	p.rest = rest
	return s, nil
}
