package bench_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notMeasured are functions of package tensor that make a tensor of what is there, or of nothing.
var notMeasured = []string{
	"Empty", "EmptyShared", "FromBuffer", "FromFile", "FromFileShared", "FromNested", "FromSlice", "NewShared",
	"Scalar",
}

// computing are the files whose methods compute in place.
var computing = []string{"cast.go", "gather.go", "inplace.go", "matmul.go", "random.go"}

// Each function of package tensor that makes a tensor, or compares two, and each method that
// changes one, has a row. A method that has the name of a function shares its loops.
func TestOps_EachOperationHasARow(t *testing.T) {
	files, err := filepath.Glob("../../../tensor/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var functions, methods []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, d := range parse(t, file).Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok || !f.Name.IsExported():
			case f.Recv == nil && computes(f):
				functions = append(functions, f.Name.Name)
			case f.Recv != nil && slices.Contains(computing, filepath.Base(file)) && computes(f):
				methods = append(methods, f.Name.Name)
			}
		}
	}
	if len(functions) < 80 || len(methods) < 20 {
		t.Fatalf("found %d functions and %d methods of package tensor only", len(functions), len(methods))
	}
	used := map[string]bool{}
	for _, file := range []string{"ops.go", "sweep.go"} {
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "tensor" {
					used[s.Sel.Name] = true
				} else {
					used["."+s.Sel.Name] = true
				}
			}
			return true
		})
	}
	for _, name := range functions {
		if !used[name] && !slices.Contains(notMeasured, name) {
			t.Errorf("tensor.%s has no row: add one to sweepOperations and to peers/torch_ops.py", name)
		}
	}
	for _, name := range methods {
		if !used["."+name] && !slices.Contains(functions, strings.TrimSuffix(name, "InPlace")) {
			t.Errorf("Tensor.%s has no row: add one to sweepOperations and to peers/torch_ops.py", name)
		}
	}
	for _, name := range notMeasured {
		if !slices.Contains(functions, name) {
			t.Errorf("tensor.%s is no function any more", name)
		}
	}
}

func parse(t *testing.T, file string) *ast.File {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// computes reports whether a function returns a tensor, or compares two.
func computes(f *ast.FuncDecl) bool {
	if f.Name.Name == "Equal" || f.Name.Name == "AllClose" {
		return true
	}
	if f.Type.Results == nil {
		return false
	}
	star, ok := f.Type.Results.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	x, ok := star.X.(*ast.Ident)
	return ok && x.Name == "Tensor"
}

// TestDtypes_ThePeerHasEachOperation reads the names in both tables.
func TestDtypes_ThePeerHasEachOperation(t *testing.T) {
	script, err := os.ReadFile("peers/torch_dtypes.py")
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, name := range regexp.MustCompile(`"(\w+)": (one|two|lambda)`).FindAllStringSubmatch(string(script), -1) {
		there = append(there, "dtype_float32_"+name[1])
	}
	var here []string
	for _, name := range rows["dtypes"] {
		if strings.HasPrefix(name, "dtype_float32_") {
			here = append(here, name)
		}
	}
	slices.Sort(there)
	if slices.Sort(here); !slices.Equal(here, there) || len(here) < 60 {
		t.Errorf("the peer has\n%v, and the suite\n%v", there, here)
	}
}
