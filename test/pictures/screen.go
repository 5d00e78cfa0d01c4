package main

import (
	"fmt"
	"regexp"
	"strings"
)

// A screen emulates the part of a terminal that progress bars need.
type screen struct {
	lines []string
	row   int
}

// control matches an escape sequence. Only cursor up and erase below have an effect.
var control = regexp.MustCompile(`\x1b\[\??(\d*)([A-Za-z])`)

func (s *screen) write(text string) {
	for text != "" {
		at := control.FindStringSubmatchIndex(text)
		if at == nil {
			s.print(text)
			return
		}
		s.print(text[:at[0]])
		switch count, what := text[at[2]:at[3]], text[at[4]:at[5]]; what {
		case "A":
			n := 1
			fmt.Sscan(count, &n)
			s.row = max(0, s.row-n)
		case "J":
			s.lines = s.lines[:min(s.row, len(s.lines))]
		}
		text = text[at[1]:]
	}
}

// print appends text to the cursor's line, and to the lines below after a newline, and moves the
// cursor there. The column is ignored, because progress bars erase whole lines before they draw
// them again.
func (s *screen) print(text string) {
	for part := range strings.SplitAfterSeq(text, "\n") {
		line := strings.TrimRight(part, "\r\n")
		for len(s.lines) <= s.row {
			s.lines = append(s.lines, "")
		}
		s.lines[s.row] += line
		if strings.HasSuffix(part, "\n") {
			s.row++
		}
	}
}

func (s *screen) text() string { return strings.Join(s.lines, "\n") }
