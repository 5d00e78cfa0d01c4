package top

import (
	"os"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// A style is a text attribute.
type style int

const (
	plain style = iota
	strong
	faint
	chosen
	alarm
	doubtful
	good
)

// codes maps styles to SGR codes, with and without colours.
var codes = map[bool][]string{
	true:  {plain: "", strong: "1", faint: "2", chosen: "7", alarm: "1;31", doubtful: "33", good: "32"},
	false: {plain: "", strong: "1", faint: "", chosen: "7", alarm: "1", doubtful: "1", good: ""},
}

// A face is the set of features that the terminal and the environment permit.
type face struct {
	Colour bool
	ASCII  bool
}

// faceOf returns the face for the environment. NO_COLOR disables colours; a locale without UTF-8
// restricts output to ASCII.
func faceOf() face {
	l := face{Colour: os.Getenv("NO_COLOR") == ""}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(os.Getenv(name)); v != "" {
			l.ASCII = !strings.Contains(v, "UTF-8") && !strings.Contains(v, "UTF8")
			break
		}
	}
	return l
}

// A piece is a text in one style. A line consists of pieces.
type piece struct {
	text  string
	style style
}

type line []piece

func styledLine(s style, texts ...string) line { return line{{strings.Join(texts, ""), s}} }

// cells computes display widths. The block characters of trends count as one cell on every
// terminal.
var cells = &runewidth.Condition{StrictEmojiNeutral: true}

// render returns the line with escape sequences, truncated to width cells.
func (l line) render(width int, f face) string {
	var b strings.Builder
	for _, p := range l {
		text := cells.Truncate(replaceUnprintable(p.text, f.ASCII), width, "")
		width -= cells.StringWidth(text)
		if code := codes[f.Colour][p.style]; code != "" && text != "" {
			text = "\x1b[" + code + "m" + text + "\x1b[0m"
		}
		b.WriteString(text)
	}
	return b.String()
}

// replaceUnprintable replaces characters that are not printable by question marks, because other
// processes choose the names of processes and queues and could embed escape sequences. If ascii is
// set, it also replaces characters outside of ASCII.
func replaceUnprintable(text string, ascii bool) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar || ascii && r > unicode.MaxASCII {
			return '?'
		}
		return r
	}, text)
}

// fitWidth pads or truncates a text to exactly width cells. left selects alignment to the left,
// and ascii output in ASCII. A truncated text ends with an ellipsis if there is room.
func fitWidth(text string, width int, left, ascii bool) string {
	text = replaceUnprintable(text, ascii)
	if n := cells.StringWidth(text); n > width {
		mark := "…"
		if ascii || width < 3 {
			mark = ""
		}
		text = cells.Truncate(text, width, mark)
	}
	blank := strings.Repeat(" ", max(0, width-cells.StringWidth(text)))
	if left {
		return text + blank
	}
	return blank + text
}
