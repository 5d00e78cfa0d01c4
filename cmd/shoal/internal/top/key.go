package top

import (
	"strings"
	"unicode/utf8"
)

// A key is a character, or one of those below, which are none.
type key rune

const (
	keyInterrupt key = 3
	keyTab       key = 9
	keyRedraw    key = 12
	keyEnter     key = 13
	keyErase     key = 21 // the whole line
	keyStop      key = 26
	keyEscape    key = 27
	keyBackspace key = 127
)

const (
	keyUp key = -1 - iota
	keyDown
	keyRight
	keyLeft
	keyHome
	keyEnd
	keyPageUp
	keyPageDown
	keyBackTab
	keyUnknown
)

// sequences are what follows ESC [ or ESC O; a number before ~ is another form of the same.
var sequences = map[string]key{
	"A": keyUp, "B": keyDown, "C": keyRight, "D": keyLeft, "H": keyHome, "F": keyEnd, "Z": keyBackTab, "M": keyEnter,
	"1~": keyHome, "7~": keyHome, "4~": keyEnd, "8~": keyEnd, "5~": keyPageUp, "6~": keyPageDown,
}

// decode returns the first key of what a terminal has sent, and how many bytes it is; 0 if more is
// to come. last says that nothing followed for a while, so that an escape is the key of that name.
func decode(b []byte, last bool) (k key, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	if b[0] == byte(keyEscape) {
		return decodeSequence(b, last)
	}
	if !utf8.FullRune(b) && !last {
		return 0, 0
	}
	r, n := utf8.DecodeRune(b)
	switch {
	case r == utf8.RuneError && n == 1:
		return keyUnknown, n
	case r == '\n':
		return keyEnter, n
	case r == '\b':
		return keyBackspace, n
	}
	return key(r), n
}

func decodeSequence(b []byte, last bool) (key, int) {
	if len(b) > 1 && b[1] != '[' && b[1] != 'O' { // with Alt, or a key after Escape
		return keyEscape, 1
	}
	const longest = 32
	for i := 2; i < len(b); i++ {
		switch c := b[i]; {
		case i == longest || c < 0x20 || c > 0x7e: // no sequence at all
			return keyUnknown, i
		case c >= 0x40 && !(c == '[' && i == 2):
			text := string(b[2 : i+1])
			if modifier := strings.IndexByte(text, ';'); modifier >= 0 { // as of Shift
				text = text[:modifier] + text[len(text)-1:]
			}
			if digits := strings.Trim(text, "0123456789"); digits != "~" {
				text = digits
			}
			if k, ok := sequences[text]; ok {
				return k, i + 1
			}
			return keyUnknown, i + 1
		}
	}
	switch {
	case !last:
		return 0, 0
	case len(b) == 1:
		return keyEscape, 1
	}
	return keyUnknown, len(b)
}
