package archtest_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// The widths of lines, where a tab has four columns. Code without its strings is counted, since
// breaking a message in two keeps it from being found.
const (
	codeColumns  = 120
	proseColumns = 100
)

var (
	stringLiteral = regexp.MustCompile("\"(?:\\\\.|[^\"\\\\])*\"|`[^`]*`?|'(?:\\\\.|[^'\\\\])*'")
	// A sentence that begins so has no actor.
	bareWho = regexp.MustCompile(`(?:^(?:Who|Whoever)|[.;:] (?:[Ww]ho|[Ww]hoever)) ([a-z]+)`)
	// Lines of a page that are no prose: code, tables, headings and pictures.
	noProse = regexp.MustCompile(`^(?:    |\t|\||#|!\[)`)
)

// TestLinesAreNarrowAndNameTheActor checks all Go files that are written by hand, and all pages.
func TestLinesAreNarrowAndNameTheActor(t *testing.T) {
	tree := os.DirFS("../..")
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go"):
			checkSource(t, name, string(read(t, tree, name)))
		case strings.HasSuffix(name, ".md"):
			checkPage(t, name, string(read(t, tree, name)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkSource(t *testing.T, name, text string) {
	if head, _, _ := strings.Cut(text, "\npackage "); strings.Contains(head, "Code generated") {
		return
	}
	raw, output := false, false // within a string of several lines, or what an example prints
	for i, line := range strings.Split(text, "\n") {
		code := strings.TrimLeft(line, "\t")
		comment, isComment := strings.CutPrefix(code, "// ")
		output = isComment && (output || strings.HasSuffix(comment, "utput:"))
		switch {
		case raw || output:
		case isComment && !strings.HasPrefix(comment, " "):
			checkProse(t, name, i, line, comment)
		case columns(stringLiteral.ReplaceAllString(line, `""`)) > codeColumns && !strings.HasPrefix(code, "//"):
			t.Errorf("%s:%d: wider than %d columns: %s", name, i+1, codeColumns, code)
		}
		if !isComment && strings.Count(line, "`")%2 == 1 && !strings.Contains(line, "'`'") {
			raw = !raw
		}
	}
}

func checkPage(t *testing.T, name, text string) {
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if !fenced && !noProse.MatchString(line) {
			checkProse(t, name, i, line, strings.TrimSpace(line))
		}
	}
}

// checkProse wants a line to be narrow, if it has a place where it could be broken, and no sentence
// in it to begin with who and a verb.
func checkProse(t *testing.T, name string, i int, line, text string) {
	if columns(line) > proseColumns && strings.Contains(stringLiteral.ReplaceAllString(text, ""), " ") {
		t.Errorf("%s:%d: wider than %d columns: %s", name, i+1, proseColumns, text)
	}
	if m := bareWho.FindStringSubmatch(text); m != nil && m[1] != "is" && m[1] != "are" {
		t.Errorf("%s:%d: name the actor in the place of who: %s", name, i+1, text)
	}
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
}
