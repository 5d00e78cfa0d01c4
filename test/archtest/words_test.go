package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// goneRow is a row of the last table of docs/vocabulary.md.
var goneRow = regexp.MustCompile(`(?m)^\| ([a-z, ]+) \| [^|]+ \| ([\w/*., ]+) \|$`)

// TestWordsThatAreGoneDoNotReturn reads the names that the source declares.
func TestWordsThatAreGoneDoNotReturn(t *testing.T) {
	tree := os.DirFS("../..")
	_, table, found := strings.Cut(string(read(t, tree, "docs/vocabulary.md")), "## Words that are gone")
	gone := make(map[string]string) // where, by word
	for _, row := range goneRow.FindAllStringSubmatch(table, -1) {
		for word := range strings.SplitSeq(row[1], ", ") {
			gone[word] = row[2]
		}
	}
	if !found || len(gone) < 15 {
		t.Fatalf("docs/vocabulary.md lists %d words", len(gone))
	}
	names := 0
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") {
			if d != nil && d.Name() == "testdata" {
				return fs.SkipDir
			}
			return err
		}
		for _, name := range declaredIn(t, tree, file) {
			names++
			for _, word := range wordsOf(name) {
				if where := gone[word]; where != "" && below(file, where) {
					t.Errorf("%s: %s: %q has another name, see docs/vocabulary.md", file, name, word)
				}
			}
		}
		return nil
	})
	if err != nil || names < 10_000 {
		t.Errorf("%d names, %v", names, err)
	}
}

// below reports whether a file belongs to one of a row's places: a folder, or files by a pattern.
// The root's files are those at the top.
func below(file, places string) bool {
	for place := range strings.SplitSeq(places, ", ") {
		if files, _ := path.Match(place, file); files || belongs(file, place) {
			return true
		}
	}
	return false
}

func belongs(file, where string) bool {
	switch where {
	case "everywhere":
		return true
	case "root":
		return path.Dir(file) == "."
	}
	return strings.HasPrefix(file, where+"/")
}

// declaredIn returns the names that a file declares, its own without suffix among them.
func declaredIn(t *testing.T, tree fs.FS, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, read(t, tree, file), 0)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{strings.TrimSuffix(path.Base(file), ".go")}
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Obj != nil && id.Obj.Pos() == id.Pos() {
			names = append(names, id.Name)
		}
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name.Name)
		case *ast.Field:
			for _, id := range n.Names {
				names = append(names, id.Name)
			}
		}
		return true
	})
	return names
}

// wordsOf splits a name in camel case or with underscores into words of lower case, each without
// the s of a plural as well.
func wordsOf(name string) (all []string) {
	var word []rune
	end := func() {
		if w := strings.ToLower(string(word)); w != "" {
			all = append(all, w)
			if one, ok := strings.CutSuffix(w, "s"); ok {
				all = append(all, one)
			}
		}
		word = word[:0]
	}
	for _, r := range name {
		if r == '_' || unicode.IsUpper(r) && len(word) > 0 && unicode.IsLower(word[len(word)-1]) {
			end()
		}
		if r != '_' {
			word = append(word, r)
		}
	}
	end()
	return all
}
