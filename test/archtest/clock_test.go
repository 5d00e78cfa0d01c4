package archtest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// The time of day may jump: somebody sets the clock, or a machine sleeps. So no code may decide
// anything by it. What time.Now returns is compared by the clock that only goes forward, as long as
// the time does not leave its process and is not taken apart. These calls take it apart, or read
// the time of day elsewhere.
var takesTimeApart = []string{"Unix", "UnixNano", "UnixMicro", "UnixMilli", "ModTime", "UTC", "Local"}

// byTheClock are the files that may, and why.
var byTheClock = map[string]string{
	"data/datasets/shardorder.go": "whether a file has changed since its samples were counted",
	"internal/codec/extension.go": "a user's time travels to another process",
	"nats/chunks.go":              "chunks of other machines, which have no other clock in common",
	"nats/delivery.go":            "a time in a header, for people",
	"torch/owner.go": "the age of a file of another PID namespace; a wrong clock delays or hastens " +
		"its removal",
	"torch/rank.go": "the time of an error, for people, where torch.distributed has it",
}

func TestClock_NothingIsDecidedByTheTimeOfDay(t *testing.T) {
	used := make(map[string]bool)
	tree := os.DirFS("../..")
	files := 0
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || isTool(name):
			return nil
		}
		files++
		for _, call := range wallClock(t, name, read(t, tree, name)) {
			if used[name] = true; byTheClock[name] == "" {
				t.Errorf("%s: what is decided by the time of day goes wrong when somebody sets the clock: "+
					"use sys.Monotonic, or say why here", call)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range byTheClock {
		if !used[name] {
			t.Errorf("%s asks for no time of day any more", name)
		}
	}
	if files < 500 {
		t.Errorf("%d files were read", files)
	}
}

// isTool reports whether a file is of a program that no user runs, or of an example.
func isTool(name string) bool {
	for _, dir := range []string{"examples/", "scripts/", "cmd/", "cmd/internal/bench/", "test/crashtest/",
		"test/torture/", "test/pictures/", "test/archtest/"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return false
}

// wallClock returns the places in a file that take a time apart. One that is made of constants, as
// time.Unix(1, 0), is no time of day.
func wallClock(t *testing.T, name string, src []byte) (found []string) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	times := slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"time"` })
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if n.Sel.Name == "CLOCK_REALTIME" || n.Sel.Name == "Gettimeofday" {
				found = append(found, fmt.Sprint(files.Position(n.Pos())))
			}
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(takesTimeApart, s.Sel.Name) || !times && s.Sel.Name != "ModTime" {
				break
			}
			variable := slices.ContainsFunc(n.Args, func(e ast.Expr) bool { _, ok := e.(*ast.BasicLit); return !ok })
			if len(n.Args) == 0 || s.Sel.Name == "Unix" && variable {
				found = append(found, fmt.Sprint(files.Position(n.Pos())))
			}
		}
		return true
	})
	return found
}
