package model

import (
	"go/ast"
	gotoken "go/token"
	"reflect"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/test/testutil"
)

// The names of constants in traces are those of the source, in its order.
func TestNames_AreThoseOfTheConstants(t *testing.T) {
	t.Parallel()
	declared := make(map[string][]string) // by type
	for _, file := range testutil.ParseDir(t, ".") {
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == gotoken.CONST {
				kind := ""
				for _, s := range g.Specs {
					v := s.(*ast.ValueSpec)
					if id, ok := v.Type.(*ast.Ident); ok {
						kind = id.Name
					} else if v.Values != nil {
						kind = "" // of another type
					}
					for _, name := range v.Names {
						declared[kind] = append(declared[kind], name.Name)
					}
				}
			}
		}
	}
	seen := 0
	for kind, list := range names {
		constants := declared[kind.Name()]
		if kind.Kind() != reflect.Uint8 || len(constants) != len(list) {
			t.Errorf("%v has the constants %q, and the names %q", kind, constants, list)
			continue
		}
		for i, name := range list {
			seen++
			if !strings.HasSuffix(strings.ToLower(constants[i]), strings.ToLower(name)) {
				t.Errorf("%v: constant %s is called %q", kind, constants[i], name)
			}
		}
	}
	if seen < 200 {
		t.Errorf("%d names", seen)
	}
}
