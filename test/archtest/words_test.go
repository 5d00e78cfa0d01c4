package archtest_test

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"unicode"
)

// retiredNames reads testdata/retired.txt: the words that no name may contain, and the names that
// no function of the product may have, each with the term to use.
func retiredNames(t *testing.T) (words, functions map[string]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/retired.txt")
	if err != nil {
		t.Fatal(err)
	}
	words, functions = map[string]string{}, map[string]string{}
	var section map[string]string
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, use, _ := strings.Cut(lines.Text(), " ")
		switch {
		case name == "" || name == "#":
		case name == "words":
			section = words
		case name == "functions":
			section = functions
		default:
			section[name] = strings.TrimSpace(use)
		}
	}
	if len(words) < 20 || len(functions) < 30 {
		t.Fatalf("read %d words and %d functions", len(words), len(functions))
	}
	return words, functions
}

// isProduct reports whether a file is neither a test, nor a tool of the tests, nor a generator.
func isProduct(file string) bool {
	return !strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(file, "test/") &&
		!strings.HasPrefix(file, "internal/kernel/asm/gen/")
}

// TestWordsThatAreGoneDoNotReturn reads the names that the source declares.
func TestWordsThatAreGoneDoNotReturn(t *testing.T) {
	tree := os.DirFS("../..")
	words, functions := retiredNames(t)
	names := 0
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") {
			if d != nil && d.Name() == "testdata" {
				return fs.SkipDir
			}
			return err
		}
		declared, called := declaredIn(t, tree, file)
		for _, name := range declared {
			names++
			for _, word := range wordsOf(name) {
				if use := words[word]; use != "" {
					t.Errorf("%s: %s: %q is retired: use %q", file, name, word, use)
				}
			}
		}
		for _, name := range called {
			if use := functions[name]; use != "" && isProduct(file) {
				t.Errorf("%s: function %s: want verb and object, such as %s", file, name, use)
			}
		}
		return nil
	})
	if err != nil || names < 10_000 {
		t.Errorf("%d names, %v", names, err)
	}
}

// declaredIn returns the names that a file declares, its own without suffix among them, and the
// names of its functions and methods.
func declaredIn(t *testing.T, tree fs.FS, file string) (names, functions []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, read(t, tree, file), 0)
	if err != nil {
		t.Fatal(err)
	}
	names = []string{strings.TrimSuffix(path.Base(file), ".go")}
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Obj != nil && id.Obj.Pos() == id.Pos() {
			names = append(names, id.Name)
		}
		switch n := n.(type) {
		case *ast.FuncDecl:
			names, functions = append(names, n.Name.Name), append(functions, n.Name.Name)
		case *ast.Field:
			for _, id := range n.Names {
				names = append(names, id.Name)
			}
		}
		return true
	})
	return names, functions
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
