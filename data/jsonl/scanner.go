package jsonl

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// A scanner decodes a JSON value in one pass, without the intermediate values that encoding/json
// needs for exact integers, and lists of numbers without a value for each number. It gives up on
// everything that is unusual or wrong. The caller must
// then use encoding/json, which has the errors. The line must be UTF-8.
type scanner struct {
	line  []byte
	at    int
	depth int
}

// mostScanned limits the nesting of the values that a scanner decodes.
const mostScanned = 100

// scan decodes a line of exactly one value. The line must be valid UTF-8; v does not refer to
// it. If ok is false, the scanner gave up: the line may still be valid, and the caller must use
// encoding/json.
func scan(line []byte) (v any, ok bool) {
	s := scanner{line: line}
	v, ok = s.value()
	return v, ok && s.next() == 0 && s.at == len(line)
}

// next skips white space and returns the byte at the position, or 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.line); s.at++ {
		if c := s.line[s.at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

func (s *scanner) value() (v any, ok bool) {
	if s.depth++; s.depth > mostScanned {
		return nil, false
	}
	defer func() { s.depth-- }()
	switch s.next() {
	case '{':
		return s.object()
	case '[':
		return s.array()
	case '"':
		return s.text()
	case 't':
		return true, s.literal("true")
	case 'f':
		return false, s.literal("false")
	case 'n':
		return nil, s.literal("null")
	}
	return s.number()
}

func (s *scanner) literal(word string) bool {
	end := s.at + len(word)
	if end > len(s.line) || string(s.line[s.at:end]) != word {
		return false
	}
	s.at = end
	return true
}

func (s *scanner) array() (any, bool) {
	if list, ok := s.scanNumbers(); ok {
		return list, true
	}
	s.at++
	list := make([]any, 0, 8)
	if s.next() == ']' {
		s.at++
		return list, true
	}
	for {
		item, ok := s.value()
		if !ok {
			return nil, false
		}
		list = append(list, item)
		switch s.next() {
		case ',':
			s.at++
		case ']':
			s.at++
			return list, true
		default:
			return nil, false
		}
	}
}

// scanNumbers decodes a list of at least one number, and of nothing else: as []int64, or, if not
// all of them are integers, as []float64. If there is another list, it consumes nothing and
// returns nil, false.
func (s *scanner) scanNumbers() (any, bool) {
	begin := s.at
	s.at++
	if c := s.next(); c != '-' && (c < '0' || c > '9') {
		s.at = begin
		return nil, false
	}
	n := bytes.Count(s.line[begin:begin+1+max(0, bytes.IndexByte(s.line[begin+1:], ']'))], []byte{','}) + 1
	whole, fractions := make([]int64, 0, n), []float64(nil)
	for {
		s.next()
		i, f, isWhole, ok := s.readNumber()
		switch {
		case !ok:
			s.at = begin
			return nil, false
		case fractions == nil && isWhole:
			whole = append(whole, i)
		case fractions == nil:
			fractions = make([]float64, len(whole), n)
			for k, v := range whole {
				fractions[k] = float64(v)
			}
			fallthrough
		case !isWhole:
			fractions = append(fractions, f)
		default:
			fractions = append(fractions, float64(i))
		}
		switch s.next() {
		case ',':
			s.at++
		case ']':
			s.at++
			if fractions != nil {
				return fractions, true
			}
			return whole, true
		default:
			s.at = begin
			return nil, false
		}
	}
}

// object decodes an object as a map[string]any. It returns false if it gave up, also on a name
// that comes twice.
func (s *scanner) object() (any, bool) {
	s.at++
	fields := map[string]any{}
	if s.next() == '}' {
		s.at++
		return fields, true
	}
	for {
		if s.next() != '"' {
			return nil, false
		}
		name, ok := s.text()
		if !ok || s.next() != ':' {
			return nil, false
		}
		s.at++
		item, ok := s.value()
		if _, twice := fields[name]; !ok || twice {
			return nil, false
		}
		fields[name] = item
		switch s.next() {
		case ',':
			s.at++
		case '}':
			s.at++
			return fields, true
		default:
			return nil, false
		}
	}
}

// text decodes a string. s.at must be the offset of its opening quote. encoding/json decodes
// strings with escapes. text returns false if the string is malformed.
func (s *scanner) text() (string, bool) {
	escaped := false
	for end := s.at + 1; end < len(s.line); end++ {
		switch c := s.line[end]; {
		case c < ' ':
			return "", false
		case c == '\\':
			escaped = true
			end++ // the next byte ends no string
		case c == '"':
			token := s.line[s.at : end+1]
			s.at = end + 1
			if !escaped {
				return string(token[1 : len(token)-1]), true
			}
			var text string
			err := json.Unmarshal(token, &text)
			return text, err == nil
		}
	}
	return "", false
}

// number decodes an integer as int64 and any other number as float64. It returns false if it
// gave up.
func (s *scanner) number() (any, bool) {
	i, f, whole, ok := s.readNumber()
	switch {
	case !ok:
		return nil, false
	case whole:
		return i, true
	}
	return f, true
}

// readNumber decodes a number: i if it is whole, which means without a fraction and an exponent,
// and otherwise f. ok is false if it is malformed or does not fit the type.
func (s *scanner) readNumber() (i int64, f float64, whole, ok bool) {
	begin := s.at
	if s.at < len(s.line) && s.line[s.at] == '-' {
		s.at++
	}
	first := s.at
	n := s.digits()
	if s.at == first || s.line[first] == '0' && s.at > first+1 {
		return 0, 0, false, false
	}
	whole = true
	if s.at < len(s.line) && s.line[s.at] == '.' {
		s.at++
		whole = false
		from := s.at
		if s.digits(); s.at == from {
			return 0, 0, false, false
		}
	}
	if s.at < len(s.line) && s.line[s.at]|0x20 == 'e' {
		s.at++
		whole = false
		if s.at < len(s.line) && (s.line[s.at] == '+' || s.line[s.at] == '-') {
			s.at++
		}
		from := s.at
		if s.digits(); s.at == from {
			return 0, 0, false, false
		}
	}
	switch {
	case whole && s.at-first > 18: // it may not fit int64
		n, err := strconv.ParseInt(string(s.line[begin:s.at]), 10, 64)
		return n, 0, true, err == nil
	case whole && first > begin:
		return -n, 0, true, true
	case whole:
		return n, 0, true, true
	}
	f, err := strconv.ParseFloat(string(s.line[begin:s.at]), 64) // the string stays on the stack
	return 0, f, false, err == nil
}

// digits skips decimal digits and returns their value, which is undefined for more than 18.
func (s *scanner) digits() (n int64) {
	for ; s.at < len(s.line) && s.line[s.at]-'0' <= 9; s.at++ {
		n = n*10 + int64(s.line[s.at]-'0')
	}
	return n
}
