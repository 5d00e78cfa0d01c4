package watch_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// What the policy of the page refuses, and what would not be there without a network.
var (
	inline = regexp.MustCompile(
		`(?i)\sstyle=|\son[a-z]+=|<style|<script(>|[^>]*[^/]>[^<])|javascript:|innerHTML|outerHTML|insertAdjacentHTML|\beval\(`)
	external = regexp.MustCompile(`(?i)(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}`)
	imported = regexp.MustCompile(`(?:from |import\(?|href=|src=)"([^"#]+)"`)
)

func TestThePageIsWholeAndHasNothingInline(t *testing.T) {
	tree := os.DirFS("page")
	read := 0
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "uplot/") {
			return err
		}
		read++
		b, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(b), "http://www.w3.org/2000/svg", "") // a namespace: nothing is loaded
		for _, bad := range append(inline.FindAllString(text, -1), external.FindAllString(text, -1)...) {
			t.Errorf("%s has %q", name, bad)
		}
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			if _, err := fs.Stat(tree, strings.TrimPrefix(m[1], "./")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
	if err != nil || read < 8 {
		t.Errorf("%d files, %v", read, err)
	}
}
