package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A row describes the counterpart of one name of the other library, as parsed by [parseRow].
type row struct {
	name  string
	here  string   // counterpart, or ""
	note  string   // the difference, or the reason
	tests []string // directory.Function
}

// parseRow parses `name | counterpart | note | tests`. A row must have a counterpart or a note, and
// a counterpart must have a test. A test name that ends with a star has no directory and matches
// all tests with the prefix.
func parseRow(line string) (row, error) {
	f := strings.Split(line, " | ")
	if len(f) != 4 {
		return row{}, fmt.Errorf("%d columns, want 4: %q", len(f), line)
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	r := row{name: f[0], here: strings.TrimPrefix(f[1], "-"), note: f[2]}
	for _, t := range strings.Fields(strings.ReplaceAll(f[3], ",", " ")) {
		if t != "-" {
			r.tests = append(r.tests, t)
		}
	}
	switch {
	case r.here == "" && r.note == "":
		return row{}, fmt.Errorf("%s has neither a counterpart nor a reason", r.name)
	case r.here != "" && len(r.tests) == 0:
		return row{}, fmt.Errorf("%s has a counterpart and no test", r.name)
	}
	return r, nil
}

// A page is a Markdown page that is generated from a table with the same name in docs.
type page struct {
	name    string
	columns string
}

var pages = []page{
	{"parity", "| Python | here | difference | proof |"},
	{"acceptance", "| row | subject | how far | proof |"},
}

// render returns the page for the project at root, or all errors in the table.
func (p page) render(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs", p.name+".txt"))
	if err != nil {
		return nil, err
	}
	t, err := readTree(root)
	if err != nil {
		return nil, err
	}
	return p.renderTable(string(text), t)
}

func (p page) renderTable(text string, t *tree) ([]byte, error) {
	var page bytes.Buffer
	var wrong []error
	seen := map[string]bool{}
	inTable := false
	for i, line := range strings.Split(text, "\n") {
		if !strings.Contains(line, " | ") {
			inTable = false
			fmt.Fprintln(&page, line)
			continue
		}
		r, err := parseRow(line)
		if err == nil && seen[r.name] {
			err = fmt.Errorf("%s stands there twice", r.name)
		}
		if err == nil {
			err = t.check(r)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("docs/%s.txt:%d: %w", p.name, i+1, err))
			continue
		}
		seen[r.name] = true
		if !inTable {
			fmt.Fprintf(&page, "%s\n|---|---|---|---|\n", p.columns)
			inTable = true
		}
		t.write(&page, r)
	}
	return append(bytes.TrimRight(page.Bytes(), "\n"), '\n'), errors.Join(wrong...)
}

// goName matches a declaration such as `ipc.Queue.Put` or `shoal.Spawn`.
var goName = regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w*(?:\\.[A-Z]\\w*)?)`")

// check returns an error that describes each name and each test of r that does not exist, or
// nil.
func (t *tree) check(r row) error {
	var wrong []error
	for _, m := range goName.FindAllStringSubmatch(r.here+" "+r.note, -1) {
		if t.names[m[1]] && !t.names[m[1]+"."+m[2]] { // other packages belong to Go
			wrong = append(wrong, fmt.Errorf("%s: there is no %s.%s", r.name, m[1], m[2]))
		}
	}
	for _, name := range r.tests {
		if len(t.testsOf(name)) == 0 {
			wrong = append(wrong, fmt.Errorf("%s: there is no test %s", r.name, name))
		}
	}
	return errors.Join(wrong...)
}

// testsOf returns the test with a name, or all tests with a prefix if the name ends with a star.
// It returns nil if there is none.
func (t *tree) testsOf(name string) (there []string) {
	begin, all := strings.CutSuffix(name, "*")
	if !all && t.tests[name] {
		return []string{name}
	}
	for test := range t.tests {
		if _, function, _ := strings.Cut(test, "."); all && strings.HasPrefix(function, begin) {
			there = append(there, test)
		}
	}
	slices.Sort(there)
	return there
}

func (t *tree) write(page *bytes.Buffer, r row) {
	here := r.here
	if here == "" {
		here = "–"
	}
	var proof []string
	for _, name := range r.tests {
		for _, name := range t.testsOf(name) {
			proof = append(proof, "`"+name+"`")
		}
	}
	fmt.Fprintf(page, "| `%s` | %s | %s | %s |\n", r.name, here, r.note, strings.Join(proof, ", "))
}
