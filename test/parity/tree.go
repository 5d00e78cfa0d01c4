package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
)

// A tree holds the tests of a project by directory and function, and the exported names of its
// packages.
type tree struct {
	tests map[string]bool // "ipc.TestX", and "shoal.TestX" for the root
	names map[string]bool // "ipc.Queue", "ipc.Queue.Put", and "ipc"
}

func readTree(root string) (*tree, error) {
	t := &tree{map[string]bool{}, map[string]bool{}}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata"):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		return t.read(path, filepath.ToSlash(dir))
	})
	t.promote()
	return t, err
}

// promote adds to each type in t.names the methods of its embedded unexported types,
// transitively.
func (t *tree) promote() {
	methods := map[string][]string{} // by type, as in "ipc.sender"
	var embedded [][2]string         // a type and a possible embedded type
	for name := range t.names {
		parts := strings.Split(name, ".")
		if len(parts) != 3 {
			continue
		}
		of, member := parts[0]+"."+parts[1], parts[2]
		if inner := parts[0] + "." + member; !ast.IsExported(member) && t.names[inner] {
			embedded = append(embedded, [2]string{of, inner})
		} else {
			methods[of] = append(methods[of], member)
		}
	}
	for range 3 { // maximum depth
		for _, e := range embedded {
			for _, m := range methods[e[1]] {
				if !t.names[e[0]+"."+m] {
					t.names[e[0]+"."+m] = true
					methods[e[0]] = append(methods[e[0]], m)
				}
			}
		}
	}
}

func (t *tree) read(path, dir string) error {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(path, "_test.go")
	if dir == "." {
		dir = "shoal"
	}
	t.names[f.Name.Name] = true
	for _, d := range f.Decls {
		for _, name := range declared(d) {
			switch {
			case !test:
				t.names[f.Name.Name+"."+name] = true
			case strings.HasPrefix(name, "Test"), strings.HasPrefix(name, "Example"), strings.HasPrefix(name, "Fuzz"):
				t.tests[dir+"."+name] = true
			}
		}
	}
	return nil
}

// declared returns the names that a declaration introduces. Methods and fields are prefixed with
// their type.
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		return []string{receiver(d.Recv.List[0].Type) + "." + d.Name.Name}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
				if st, ok := s.Type.(*ast.StructType); ok {
					for _, f := range st.Fields.List {
						for _, n := range f.Names {
							names = append(names, s.Name.Name+"."+n.Name)
						}
						if len(f.Names) == 0 {
							names = append(names, s.Name.Name+"."+receiver(f.Type))
						}
					}
				}
			}
		}
	}
	return names
}

// receiver returns the name of a receiver type without pointer and type parameters, or "" if it
// has none.
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
