package top

import (
	"strings"
	"unicode/utf8"
)

// A key is a character, or one of the negative constants for keys that have none.
type key rune

const (
	keyInterrupt key = 3
	keyTab       key = 9
	keyRedraw    key = 12
	keyEnter     key = 13
	keyErase     key = 21 // clears the line
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

// sequences maps the bytes after ESC [ or ESC O to keys. Terminals differ in their sequences.
var sequences = map[string]key{
	"A": keyUp, "B": keyDown, "C": keyRight, "D": keyLeft, "H": keyHome, "F": keyEnd, "Z": keyBackTab, "M": keyEnter,
	"1~": keyHome, "7~": keyHome, "4~": keyEnd, "8~": keyEnd, "5~": keyPageUp, "6~": keyPageDown,
}

// decode returns the first key of the terminal input b and its length in bytes. It returns length 0
// if more input is needed. If last is set, no input followed for a while, so a lone ESC is the
// Escape key.
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
	if len(b) > 1 && b[1] != '[' && b[1] != 'O' { // Alt with a key, or a key after Escape
		return keyEscape, 1
	}
	const longest = 32
	for i := 2; i < len(b); i++ {
		switch c := b[i]; {
		case i == longest || c < 0x20 || c > 0x7e: // not a valid sequence
			return keyUnknown, i
		case c >= 0x40 && !(c == '[' && i == 2):
			text := string(b[2 : i+1])
			if modifier := strings.IndexByte(text, ';'); modifier >= 0 { // such as Shift; ignored
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
