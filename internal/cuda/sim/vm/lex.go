package vm

import (
	"fmt"
	"strings"
)

// A SyntaxError is returned by [Parse] for text that is not valid PTX, or that uses PTX
// features that the package does not support. Line is counted from 1.
type SyntaxError struct {
	Line   int
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("ptx: line %d: %s", e.Line, e.Reason) }

// A token is a word (including dots, and the % of a register) or one punctuation character. The
// last token of a text is empty.
type token struct {
	text string
	line int
}

// splitTokens splits a text into tokens, without blanks and comments. The error is a
// [*SyntaxError] for a character that PTX does not have.
func splitTokens(text string) (tokens []token, err error) {
	line := 1
	for len(text) > 0 {
		n := 1
		switch c := text[0]; {
		case c == '\n':
			line++
		case c == ' ' || c == '\t' || c == '\r':
		case strings.HasPrefix(text, "//"):
			if n = strings.IndexByte(text, '\n'); n < 0 {
				n = len(text)
			}
		case strings.IndexByte(",;:{}()[]+-!@<>=", c) >= 0:
			tokens = append(tokens, token{text[:1], line})
		case isWordByte(c):
			for n < len(text) && isWordByte(text[n]) {
				n++
			}
			tokens = append(tokens, token{text[:n], line})
		default:
			return nil, &SyntaxError{line, fmt.Sprintf("character %q", c)}
		}
		text = text[n:]
	}
	return append(tokens, token{"", line}), nil
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' ||
		c == '%' || c == '.'
}
