package testutil

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// ParseDir parses the Go files of a directory, except tests, in the order of their names. It
// ignores build constraints, so the files may belong to different systems. It ends the test if a
// file cannot be parsed, or if there is none.
func ParseDir(tb testing.TB, dir string) (files []*ast.File) {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		tb.Fatal(err)
	}
	set := token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			tb.Fatal(err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		tb.Fatalf("no Go files in %s", dir)
	}
	return files
}
