package archtest_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	scriptTest = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`)
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
)

// TestScriptsNameTestsThatAreThere reads what CI runs and leaves out: a pattern that matches no
// test would pass because nothing ran. A pattern may be the beginning of a name.
func TestScriptsNameTestsThatAreThere(t *testing.T) {
	tree := os.DirFS("../..")
	var tests []string
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, "_test.go") {
			for _, m := range testFunc.FindAllSubmatch(read(t, tree, file), -1) {
				tests = append(tests, string(m[1]))
			}
		}
		return err
	})
	if err != nil || len(tests) < 1000 {
		t.Fatalf("%d tests, %v", len(tests), err)
	}
	scripts, err := fs.Glob(tree, "scripts/*")
	if err != nil {
		t.Fatal(err)
	}
	all, named := "\n"+strings.Join(tests, "\n")+"\n", 0
	for _, file := range append(scripts, "Makefile", ".ci/steps") {
		if st, err := fs.Stat(tree, file); err != nil || st.IsDir() {
			continue
		}
		for _, name := range scriptTest.FindAllString(string(read(t, tree, file)), -1) {
			named++
			if !strings.Contains(all, "\n"+name) {
				t.Errorf("%s: no test begins with %s", file, name)
			}
		}
	}
	if named < 20 {
		t.Errorf("the scripts name %d tests", named)
	}
}
