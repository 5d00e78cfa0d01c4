package words_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/words"
)

func TestCleanLeavesNothingThatMovesTheCursor(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "train 3": "train 3", "資料": "資料", `C:\new "x"`: `C:\new "x"`, "\ufffd": "\ufffd",
		"a\x1b[2Jb": `a\x1b[2Jb`, "a\nb\r\tc": `a\nb\r\tc`, "\x00\x7f": `\x00\x7f`,
		"\u0085\u009b31m": `\u0085\u009b31m`,
		"\u202egnp":       `\u202egnp`, "\xff\xc3": `\xff\xc3`, "a\u2028b": `a\u2028b`,
	} {
		if got := words.Clean(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
		if again := words.Clean(want); again != want {
			t.Errorf("%q is cleaned again, to %q", want, again)
		}
	}
}

// A title is a Stringer.
type title string

func (t title) String() string { return string(t) }

func TestFprintfCleansItsTexts(t *testing.T) {
	var b strings.Builder
	_, err := words.Fprintf(&b, "\x1b[1m%s\t%v, %v: %d %5.1f %v\n", "a\nb", title("c\x1bd"), errors.New("e\rf"), 3,
		1.5, []int{1})
	if want := "\x1b[1ma\\nb\tc\\x1bd, e\\rf: 3   1.5 [1]\n"; err != nil || b.String() != want {
		t.Errorf("%q, %v; want %q", b.String(), err, want)
	}
}

func TestCleanErrorKeepsLinesAndCauses(t *testing.T) {
	tame := errors.New("tame")
	if words.CleanError(nil) != nil || words.CleanError(tame) != tame {
		t.Error("what is clean is not wrapped")
	}
	err := words.CleanError(errors.Join(fmt.Errorf("read \x1b[2J: %w", fs.ErrNotExist), errors.New("second\r")))
	if want := "read \\x1b[2J: file does not exist\n    second\\r"; err.Error() != want ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q, want %q", err, want)
	}
}
