//go:build shoalcrash

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// writers are the methods of arena.Word that modify shared memory.
var writers = []string{"CAS", "Store", "Set", "Add", "Or", "AndNot"}

// A site is a call of a method of arena.Word that writes. A process may die before or after it.
type site struct {
	At     string // "file.go:line"
	Func   string // enclosing function
	Method string

	file string
	line int
}

// staticSites returns every [site] in the packages dirs of the module at root, in the order of
// files and lines. It is exact: the type checker resolves receivers, shared memory consists of
// Words, and their contents are only accessible through methods. It returns an error if a
// package does not satisfy this, or if two sites are in one line.
func staticSites(root string, dirs ...string) ([]site, error) {
	// The importer reads the sources of the standard library. A program built with -trimpath does
	// not know their location, but the go command does.
	if build.Default.GOROOT == "" {
		out, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return nil, fmt.Errorf("find the sources of the standard library: go env GOROOT: %w", err)
		}
		build.Default.GOROOT = strings.TrimSpace(string(out))
	}
	build.Default.BuildTags = append(build.Default.BuildTags, "shoalcrash")
	fset := token.NewFileSet()
	imp := importer.ForCompiler(fset, "source", nil)
	sites := make(map[string]site)
	for _, dir := range dirs {
		if err := sitesOf(fset, imp, filepath.Join(root, dir), sites); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(sites), func(a, b site) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line)
	}), nil
}

func sitesOf(fset *token.FileSet, imp types.Importer, dir string, sites map[string]site) error {
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		return fmt.Errorf("find the files of %s: %w", dir, err)
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	info := &types.Info{Selections: make(map[*ast.SelectorExpr]*types.Selection)}
	cfg := types.Config{Importer: imp}
	pkg, err := cfg.Check(p.ImportPath, fset, files, info)
	if err != nil {
		return fmt.Errorf("check the types of %s: %w", dir, err)
	}
	if err := wordsOnly(pkg); err != nil {
		return err
	}
	for _, f := range files {
		for _, decl := range f.Decls {
			if err := sitesIn(fset, info, decl, sites); err != nil {
				return err
			}
		}
	}
	return nil
}

func sitesIn(fset *token.FileSet, info *types.Info, decl ast.Decl, sites map[string]site) (err error) {
	ast.Inspect(decl, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || info.Selections[sel] == nil {
			return true
		}
		pos := fset.Position(sel.Sel.Pos())
		base := filepath.Base(pos.Filename)
		if strings.HasSuffix(base, "_crash.go") { // test support
			return true
		}
		at := fmt.Sprintf("%s:%d", base, pos.Line)
		if s := info.Selections[sel]; s.Kind() == types.FieldVal && isWord(s.Recv()) {
			err = fmt.Errorf("%s: shared memory behind the back of its Word", at)
		}
		if !writesWord(info.Selections[sel]) {
			return true
		}
		if _, twice := sites[at]; twice {
			err = fmt.Errorf("%s: two writes of shared words in one line cannot be told apart", at)
		}
		sites[at] = site{at, declName(decl), sel.Sel.Name, base, pos.Line}
		return true
	})
	return err
}

// wordsOnly returns an error if a structure in shared memory, which has the host layout, contains
// anything other than Words, bytes and padding.
func wordsOnly(pkg *types.Package) error {
	for _, name := range pkg.Scope().Names() {
		t, ok := pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct)
		if !ok || t.NumFields() == 0 || t.Field(0).Type().String() != "structs.HostLayout" {
			continue
		}
		for i := 1; i < t.NumFields(); i++ {
			of := t.Field(i).Type()
			for a, ok := of.Underlying().(*types.Array); ok; a, ok = of.Underlying().(*types.Array) {
				of = a.Elem()
			}
			if b, _ := of.(*types.Basic); !isWord(of) && (b == nil || b.Kind() != types.Uint8) {
				return fmt.Errorf("%s.%s is in shared memory and no Word", name, t.Field(i).Name())
			}
		}
	}
	return nil
}

// declName returns "Type.method" or "function", or "" if decl is not a function.
func declName(decl ast.Decl) string {
	fn, ok := decl.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	return types.ExprString(t) + "." + fn.Name.Name
}

func writesWord(s *types.Selection) bool {
	f, ok := s.Obj().(*types.Func)
	if !ok || !slices.Contains(writers, f.Name()) {
		return false
	}
	recv := f.Signature().Recv()
	return recv != nil && isWord(recv.Type())
}

// isWord reports whether t is Word, a Word with rules, or a pointer to one.
func isWord(t types.Type) bool {
	if ptr, ok := t.(*types.Pointer); ok {
		t = ptr.Elem()
	}
	named, ok := t.(*types.Named)
	return ok && (named.Obj().Name() == "Word" || named.Obj().Name() == "Of") && named.Obj().Pkg().Name() == "word"
}
