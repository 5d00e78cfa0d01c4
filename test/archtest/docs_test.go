package archtest_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a page can name that may go away without it.
var (
	fences   = regexp.MustCompile("(?s)\n```.*?\n```")
	goBlocks = regexp.MustCompile("(?s)\n```go\n(.*?)```")
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings = regexp.MustCompile(`(?m)^#+ (.+)$`)
	quoted   = regexp.MustCompile("`[^`\n]+`")
	testName = regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*$`)
	fileName = regexp.MustCompile(`^[\w./-]+\.(go|py|txt|md|txtar|svg)$`)
	makeRule = regexp.MustCompile(`^make ([a-z-]+)`)
	command  = regexp.MustCompile(`^shoal ([a-z]+)`)
)

// TestPagesNameWhatIsThere fails where a page has a dead link, or names a test, a file, a make
// target or a command that there is not, and where README.md or the guide shows Go code that is not
// in an example or a lesson, which a test runs.
func TestPagesNameWhatIsThere(t *testing.T) {
	tree := os.DirFS("../..")
	var pages []string
	files := make(map[string]bool) // by each end of the path: a page may leave out the folder that it is about
	var source, programs bytes.Buffer
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && name != "." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return err
		}
		for rest, ok := name, true; ok; _, rest, ok = strings.Cut(rest, "/") {
			files[rest] = true
		}
		switch {
		case strings.HasSuffix(name, ".md"):
			pages = append(pages, name)
		case name == "Makefile", strings.HasSuffix(name, "_test.go"), name == "cmd/shoal/main.go":
			source.Write(read(t, tree, name))
		case strings.HasSuffix(name, ".go") &&
			(strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, "docs/")):
			programs.Write(read(t, tree, name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text := string(read(t, tree, page))
		for _, block := range goBlocks.FindAllStringSubmatch(text, -1) {
			whole := page == "README.md" || page == "docs/guide.md" || strings.Contains(block[1], "func main()")
			if whole && !bytes.Contains(programs.Bytes(), []byte(block[1])) {
				t.Errorf("%s: this program is none of the examples:\n%s", page, block[1])
			}
		}
		prose := fences.ReplaceAllString(text, "")
		for _, l := range links.FindAllStringSubmatch(quoted.ReplaceAllString(prose, ""), -1) {
			checkLink(t, tree, page, l[1])
		}
		for _, q := range quoted.FindAllString(prose, -1) {
			q = strings.Trim(q, "`")
			has := func(text string) bool { return bytes.Contains(source.Bytes(), []byte(text)) }
			switch {
			case testName.MatchString(q) && !has("func "+q+"("):
				t.Errorf("%s: there is no %s", page, q)
			case fileName.MatchString(q) && !strings.Contains(q, "://") && !files[path.Clean(q)]:
				t.Errorf("%s: there is no file %s", page, q)
			}
			if m := makeRule.FindStringSubmatch(q); m != nil && !has("\n"+m[1]+":") {
				t.Errorf("%s: the Makefile has no %s", page, m[1])
			}
			if m := command.FindStringSubmatch(q); m != nil && !has("\t{Name: \""+m[1]+"\",") {
				t.Errorf("%s: there is no command shoal %s", page, m[1])
			}
		}
	}
}

// checkLink follows a link within the tree, and to a heading.
func checkLink(t *testing.T, tree fs.FS, page, link string) {
	t.Helper()
	if strings.Contains(link, "://") {
		return
	}
	target, heading, _ := strings.Cut(link, "#")
	name := page
	if target != "" {
		name = path.Join(path.Dir(page), target)
	}
	if _, err := fs.Stat(tree, name); err != nil {
		t.Errorf("%s: dead link %s", page, link)
		return
	}
	if heading == "" {
		return
	}
	for _, h := range headings.FindAllStringSubmatch(string(read(t, tree, name)), -1) {
		if anchor(h[1]) == heading {
			return
		}
	}
	t.Errorf("%s: %s has no heading #%s", page, name, heading)
}

// anchor is what a heading is called in a link.
func anchor(heading string) string {
	keep := func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', r >= '0' && r <= '9', r >= 'a' && r <= 'z', r > 127:
			return r
		}
		return -1
	}
	return strings.Map(keep, strings.ToLower(heading))
}

func read(t *testing.T, tree fs.FS, name string) []byte {
	t.Helper()
	b, err := fs.ReadFile(tree, filepath.ToSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
