package top

import (
	"os"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// A style is how a text stands out.
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

// codes are of a terminal with colours, and of one without.
var codes = map[bool][]string{
	true:  {plain: "", strong: "1", faint: "2", chosen: "7", alarm: "1;31", doubtful: "33", good: "32"},
	false: {plain: "", strong: "1", faint: "", chosen: "7", alarm: "1", doubtful: "1", good: ""},
}

// A face is what a terminal and its owner permit.
type face struct {
	Colour bool
	ASCII  bool
}

// faceOf reads NO_COLOR, and the locale: without UTF-8 there are only letters.
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

// A piece is a text in one style; a line is some of them.
type piece struct {
	text  string
	style style
}

type line []piece

func say(s style, texts ...string) line { return line{{strings.Join(texts, ""), s}} }

// cells counts those of a text. The marks of trends take one everywhere.
var cells = &runewidth.Condition{StrictEmojiNeutral: true}

// render writes a line for a terminal, no wider than width.
func (l line) render(width int, f face) string {
	var b strings.Builder
	for _, p := range l {
		text := cells.Truncate(clean(p.text, f.ASCII), width, "")
		width -= cells.StringWidth(text)
		if code := codes[f.Colour][p.style]; code != "" && text != "" {
			text = "\x1b[" + code + "m" + text + "\x1b[0m"
		}
		b.WriteString(text)
	}
	return b.String()
}

// clean takes out what would move the cursor: the names of processes and queues are anybody's.
func clean(text string, ascii bool) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar || ascii && r > unicode.MaxASCII {
			return '?'
		}
		return r
	}, text)
}

// fit makes a text exactly as wide as width. A text that is cut ends with a mark.
func fit(text string, width int, left, ascii bool) string {
	text = clean(text, ascii)
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
