package pickle

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The text opcodes of protocols 0 and 1 have their operands on lines.
func init() {
	ops[opInt] = lineOpcode((*source).readLine, func(m *machine,
		line string) error {
		return m.pushResult(parseIntLine(line))
	})
	ops[opLong] = lineOpcode((*source).readLine,
		func(m *machine, line string) error { return m.pushResult(parseIntLine(strings.TrimSuffix(line, "L"))) })
	ops[opFloat] = lineOpcode((*source).readLine, func(m *machine,
		line string) error {
		return m.pushResult(parseFloatLine(line))
	})
	ops[opString] = lineOpcode((*source).readLongLine, func(m *machine,
		line string) error {
		return m.pushResult(parseQuoted(line))
	})
	ops[opUnicode] = lineOpcode((*source).readLongLine, func(m *machine,
		line string) error {
		return m.pushResult(parseEscaped(line))
	})
	ops[opPut] = lineOpcode((*source).readLine, memoIndexOperand((*machine).putMemo))
	ops[opGet] = lineOpcode((*source).readLine, memoIndexOperand((*machine).getMemo))
	ops[opPersID] = lineOpcode((*source).readLine, func(m *machine,
		line string) error {
		return m.pushPersistent([]any{line})
	})
	ops[opList] = markOpcode(func(m *machine, v []any) error { return m.push(&List{Items: slices.Clone(v)}) })
	ops[opDict] = markOpcode((*machine).dictOf)
	ops[opInst] = (*machine).pushInst
	ops[opObj] = markOpcode((*machine).pushObj)
}

// lineOpcode returns an opcode with a one-line operand, which read reads and do executes.
func lineOpcode(read func(*source) (string, error), do func(m *machine, line string) error) func(*machine) error {
	return func(m *machine) error {
		line, err := read(m.src)
		if err != nil {
			return err
		}
		return do(m, line)
	}
}

// memoIndexOperand returns a function that parses its operand as a memo index and passes it to
// do. The error wraps [ErrFormat] if the operand is no index.
func memoIndexOperand(do func(*machine, uint64) error) func(*machine, string) error {
	return func(m *machine, line string) error {
		at, err := strconv.ParseUint(line, 10, 63)
		if err != nil {
			return malformed("invalid memo index %.20q", line)
		}
		return do(m, at)
	}
}

// parseIntLine parses a decimal integer to an int64 or, if it is larger, a *[big.Int], and "00"
// and "01" to a bool. The error wraps [ErrFormat].
func parseIntLine(line string) (any, error) {
	switch line {
	case "00", "01":
		return line == "01", nil
	}
	if n, err := strconv.ParseInt(line, 10, 64); err == nil {
		return n, nil
	}
	n, ok := new(big.Int).SetString(line, 10)
	if !ok {
		return nil, malformed("invalid number %.20q", line)
	}
	return n, nil
}

func parseFloatLine(line string) (any, error) {
	v, err := strconv.ParseFloat(line, 64)
	if err != nil || strings.ContainsAny(line, "xX_pP") { // Go accepts these, Python does not
		return nil, malformed("invalid number %.20q", line)
	}
	return v, nil
}

// parseQuoted parses a Python 2 str in repr notation to a string. The error wraps [ErrFormat] if
// the notation is invalid or the str is not ASCII.
func parseQuoted(line string) (any, error) {
	n := len(line)
	if n < 2 || line[0] != line[n-1] || line[0] != '\'' && line[0] != '"' {
		return nil, malformed("str begins with %.20q, want a quote", line)
	}
	var b []byte
	for rest := line[1 : n-1]; len(rest) > 0; {
		if rest[0] != '\\' {
			b, rest = append(b, rest[0]), rest[1:]
			continue
		}
		v, _, tail, err := strconv.UnquoteChar(rest, line[0])
		if err != nil && len(rest) > 1 && (rest[1] == '\'' || rest[1] == '"') {
			v, tail, err = rune(rest[1]), rest[2:], nil
		}
		if err != nil || v > 0xff {
			return nil, malformed("str contains invalid %.10q", rest)
		}
		b, rest = append(b, byte(v)), tail
	}
	return decodeASCII(b)
}

// parseEscaped parses a Latin-1 string to a Go string. Only the escapes \u and \U are
// interpreted. The error wraps [ErrFormat] if an escape is invalid.
func parseEscaped(line string) (any, error) {
	b := make([]byte, 0, len(line))
	for at := 0; at < len(line); at++ {
		digits := 0
		if line[at] == '\\' && at+1 < len(line) {
			digits = map[byte]int{'u': 4, 'U': 8}[line[at+1]]
		}
		if digits == 0 {
			b = utf8.AppendRune(b, rune(line[at]))
			continue
		}
		if at+2+digits > len(line) {
			return nil, malformed("str ends with invalid %.10q", line[at:])
		}
		n, err := strconv.ParseUint(line[at+2:at+2+digits], 16, 32)
		if err != nil || n > utf8.MaxRune {
			return nil, malformed("str contains invalid %.10q", line[at:])
		}
		b = appendPoint(b, rune(n))
		at += 1 + digits
	}
	return decodeText(b)
}

// appendPoint appends a code point in UTF-8. Lone surrogates are encoded as Python encodes them
// in the other protocols.
func appendPoint(b []byte, r rune) []byte {
	if r >= 0xd800 && r <= 0xdfff {
		return append(b, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f|0x80, 0x80|byte(r)&0x3f)
	}
	return utf8.AppendRune(b, r)
}

// dictOf pushes a dict of pairs, alternating keys and values.
func (m *machine) dictOf(pairs []any) error {
	pairs = slices.Clone(pairs)
	if err := m.push(new(Dict)); err != nil {
		return err
	}
	return m.setItems(pairs)
}

// pushInst pushes an object. Its class is named by the next two lines of the pickle, and its
// arguments are above the mark, which pushInst removes.
func (m *machine) pushInst() error {
	if err := m.pushGlobalLines(); err != nil {
		return err
	}
	class, err := m.pop(1)
	if err != nil {
		return err
	}
	g := class[0]
	args, err := m.popMark()
	if err != nil {
		return err
	}
	return m.pushCall(g, Tuple(slices.Clone(args)), nil, false)
}

// pushObj pushes an object of the class v[0] with the arguments v[1:].
func (m *machine) pushObj(v []any) error {
	if len(v) == 0 {
		return malformed("object has no class")
	}
	return m.pushCall(v[0], Tuple(slices.Clone(v[1:])), nil, false)
}

// newObject implements copyreg._reconstructor, which protocols 0 and 1 use to encode an object,
// and returns an inert *[Object]. The base class must be object; otherwise the error wraps
// [ErrFormat].
func newObject(args Tuple) (any, error) {
	class, err := argumentAt[Global](args, 0)
	if err != nil {
		return nil, err
	}
	base, err := argumentAt[Global](args, 1)
	if err != nil {
		return nil, err
	}
	if len(args) != 3 || base != (Global{Module: "builtins", Name: "object"}) || args[2] != nil {
		return nil, malformed("object of %s has base %s, want builtins.object", class, base)
	}
	return &Object{Class: class, New: true, Args: Tuple{}}, nil
}
