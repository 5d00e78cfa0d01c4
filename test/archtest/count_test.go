package archtest

import (
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// mostNames is how many functions, methods and types all public packages may have together, but for
// those that have a limit of their own.
const mostNames = 1400

// ownLimits are packages beyond the core of one machine, each with a row of its own.
var ownLimits = map[string]int{"nats": 60, "nats/broker": 9, "data/service": 40, "metrics": 10, "trace": 12, "shoallog": 3, "shoalotel": 10, "ipc/tcp": 2}

// TestSurface_StaysSmall counts what a reader of the documentation meets, and compares the sum with
// that of the table in ARCHITECTURE.md.
func TestSurface_StaysSmall(t *testing.T) {
	h, err := load("github.com/shoal-mp/shoal", os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	sum, own := 0, make(map[string]int)
	for _, p := range h.packages {
		if !public(p.dir) {
			continue
		}
		for _, f := range p.files {
			switch _, apart := ownLimits[p.dir]; {
			case f.test:
			case apart:
				own[p.dir] += exported(f.ast)
			default:
				sum += exported(f.ast)
			}
		}
	}
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for dir, most := range ownLimits {
		if row := fmt.Sprintf("| `%s`, besides | | %d |", dir, own[dir]); own[dir] > most || !strings.Contains(string(page), row) {
			t.Errorf("%s has %d names of at most %d; ARCHITECTURE.md should have the row %q", dir, own[dir], most, row)
		}
	}
	all := regexp.MustCompile(`(?m)^\| all \| [0-9,]+ \| ([0-9,]+) \|$`).FindSubmatch(page)
	if all == nil {
		t.Fatal("ARCHITECTURE.md has no row of all names")
	}
	told, err := strconv.Atoi(strings.ReplaceAll(string(all[1]), ",", ""))
	if err != nil || told != sum || sum > mostNames {
		t.Errorf("public packages have %d names, ARCHITECTURE.md says %s, and at most %d are wanted", sum, all[1], mostNames)
	}
}

// public reports whether users import the package of a directory.
func public(dir string) bool {
	for part := range strings.SplitSeq(dir, "/") {
		switch part {
		case "internal", "cmd", "examples", "docs", "scripts", "test":
			return false
		}
	}
	return true
}

// exported counts the exported functions and types of a file, and the exported methods of exported
// types.
func exported(f *ast.File) (n int) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
				n++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() {
					n++
				}
			}
		}
	}
	return n
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
