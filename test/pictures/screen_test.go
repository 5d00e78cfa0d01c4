package main

import (
	"slices"
	"testing"
)

func TestAScreenShowsWhatWasWrittenLast(t *testing.T) {
	var s screen
	for _, text := range []string{"0 %\r\n", "1 %\r\n", "\x1b[2A\x1b[J10 %\r\n", "20 %\r\n\x1b[?25h", "\r\ndone\r\n"} {
		s.write(text)
	}
	if want := []string{"10 %", "20 %", "", "done", ""}; !slices.Equal(s.lines, want) {
		t.Errorf("%q, want %q", s.lines, want)
	}
}
