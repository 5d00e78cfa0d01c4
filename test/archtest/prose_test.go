package archtest_test

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updateProse = flag.Bool("archtest.prose", false, "record the rates of idioms that have improved in "+proseFile)

const (
	proseFile  = "testdata/prose.txt"
	leastWords = 200 // a text with fewer words has no rate
)

// An idiom is a habit of language that the texts of a package have too often, or too seldom.
type idiom struct {
	name    string
	pattern *regexp.Regexp
	goal    float64 // in 10,000 words
	more    bool    // the goal is a minimum
}

// The goals are the worst rates of bbolt, cilium/ebpf, GoMLX and Go's net/http, os, sync and
// runtime.
var idioms = []idiom{
	{"what", regexp.MustCompile(`(?i)\bwhat\b`), 8, false},
	{"that-of", regexp.MustCompile(`(?i)\b(that|those) of\b`), 2, false},
	{"of-which", regexp.MustCompile(`(?i)\b(of|for|to|in|by|with|from|on) which\b`), 6, false},
	{"whose", regexp.MustCompile(`(?i)\bwhose\b`), 2, false},
	{"who", regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|who|whoever)\b`), 1, false},
	{"must", regexp.MustCompile(`(?i)\b(must|should)\b`), 29, true},
}

// TestProseGetsNoWorse compares the rates of idioms in the comments of each package, and in each
// page, with those on record. A rate may only approach its goal; one occurrence more is not
// counted. Run with -archtest.prose to record the rates that have improved.
func TestProseGetsNoWorse(t *testing.T) {
	texts := proseTexts(t)
	recorded := readRates(t)
	kept := make(map[string][]float64)
	for name, text := range texts {
		words := len(strings.Fields(text))
		if words < leastWords {
			continue
		}
		old, one := recorded[name], 1e4/float64(words)+0.05 // of one occurrence more or less
		for i, x := range idioms {
			rate := 1e4 * float64(len(x.pattern.FindAllString(text, -1))) / float64(words)
			reached := rate <= x.goal && !x.more || rate >= x.goal && x.more
			worse := old != nil && !reached && (rate > old[i]+one && !x.more || rate < old[i]-one && x.more)
			if worse {
				t.Errorf("%s: %q %.1f times in 10,000 words, want %.1f as on record, or the goal %.0f",
					name, x.name, rate, old[i], x.goal)
			}
			if old != nil && !x.more {
				rate = min(rate, old[i])
			} else if old != nil {
				rate = max(rate, old[i])
			}
			kept[name] = append(kept[name], rate)
		}
		if old == nil && !*updateProse {
			t.Errorf("%s has no rates on record: run go test ./test/archtest -archtest.prose", name)
		}
	}
	if *updateProse {
		writeRates(t, kept)
	}
}

// proseTexts returns the comments of each package's product code by its directory, and the prose
// of each page by its path.
func proseTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	tree := os.DirFS("../..")
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			texts[path.Dir(name)] += lineComments(t, name, read(t, tree, name))
		case strings.HasPrefix(name, "docs/") && strings.HasSuffix(name, ".md"), name == "README.md",
			name == "ARCHITECTURE.md":
			texts[name] = pageProse(string(read(t, tree, name)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// lineComments returns the text of a file's // comments.
func lineComments(t *testing.T, name string, source []byte) string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, group := range f.Comments {
		for _, c := range group.List {
			if text, ok := strings.CutPrefix(c.Text, "//"); ok && !directive.MatchString(text) {
				b.WriteString(text + "\n")
			}
		}
	}
	return b.String()
}

var directive = regexp.MustCompile(`^(?:[a-z]+:|export |line )`)

// pageProse returns the lines of a page outside of code.
func pageProse(text string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced && !strings.HasPrefix(line, "    ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// readRates reads the record: a line for each package or page, with the rate of each idiom.
func readRates(t *testing.T) map[string][]float64 {
	t.Helper()
	rates := make(map[string][]float64)
	data, err := os.ReadFile(proseFile)
	if err != nil && !*updateProse {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var name string
		row := make([]float64, len(idioms))
		into := []any{&name}
		for i := range row {
			into = append(into, &row[i])
		}
		if _, err := fmt.Sscan(line, into...); err != nil {
			t.Fatalf("%s: %q: %v", proseFile, line, err)
		}
		rates[name] = row
	}
	return rates
}

func writeRates(t *testing.T, rates map[string][]float64) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# How often idioms occur in 10,000 words of comments or of a page; see prose_test.go.\n#")
	for _, x := range idioms {
		fmt.Fprintf(&b, " %s", x.name)
	}
	b.WriteString("\n")
	for _, name := range slices.Sorted(maps.Keys(rates)) {
		b.WriteString(name)
		for _, r := range rates[name] {
			fmt.Fprintf(&b, " %.1f", r)
		}
		b.WriteString("\n")
	}
	if err := os.WriteFile(proseFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
