package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/shoal-mp/shoal"

// isPackage reports whether a directory of the repository contains Go files other than tests.
func (s *site) isPackage(dir string) bool {
	for file := range s.files {
		if path.Dir(file) == dir && strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			return true
		}
	}
	return false
}

// public reports whether users may import the package in a directory. They may not import internal
// packages, commands, examples, and packages in docs and scripts.
func public(dir string) bool {
	for _, first := range []string{"cmd", "examples", "docs", "scripts"} {
		if dir == first || strings.HasPrefix(dir, first+"/") {
			return false
		}
	}
	return !slices.Contains(strings.Split(dir, "/"), "internal")
}

func packagePage(dir string) string {
	if dir == "." {
		return "packages/shoal.md"
	}
	return "packages/" + dir + ".md"
}

// packages writes a page for each public package and an index page.
func (s *site) packages() error {
	dirs := make(map[string][]string) // Go files by directory
	for file := range s.files {
		if dir := path.Dir(file); strings.HasSuffix(file, ".go") && public(dir) && !hidden(file) {
			dirs[dir] = append(dirs[dir], file)
		}
	}
	var list strings.Builder
	list.WriteString("# Packages\n\n| import | what it has |\n|---|---|\n")
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		slices.Sort(dirs[dir])
		p, fset, err := s.load(dir, dirs[dir])
		if err != nil {
			return err
		}
		if err := s.put(packagePage(dir), pageOf(p, fset)); err != nil {
			return err
		}
		fmt.Fprintf(&list, "| [%s](%s) | %s |\n", p.ImportPath,
			strings.TrimPrefix(packagePage(dir), "packages/"), p.Synopsis(p.Doc))
	}
	return s.put("packages/README.md", list.String())
}

// load returns the documentation of the package in dir for Linux, with its examples. files are
// its Go files, tests included.
func (s *site) load(dir string, files []string) (*doc.Package, *token.FileSet, error) {
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, file := range files {
		name := path.Base(file)
		if strings.HasSuffix(name, "_other.go") || strings.HasSuffix(name, "_arm64.go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(s.root, file), nil, parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		parsed = append(parsed, f)
	}
	p, err := doc.NewFromFiles(fset, parsed, path.Join(module, dir))
	return p, fset, err
}

// pageOf returns the Markdown page of a package.
func pageOf(p *doc.Package, fset *token.FileSet) string {
	w := &pageWriter{p: p, fset: fset}
	w.printf("# %s\n\n```go\nimport %q\n```\n\n", p.Name, p.ImportPath)
	w.text(p.Doc)
	w.examples(p.Examples)
	w.values("Constants", p.Consts)
	w.values("Variables", p.Vars)
	if len(p.Funcs) > 0 {
		w.printf("## Functions\n\n")
	}
	w.funcs(p.Funcs)
	for _, t := range p.Types {
		w.printf("## type %s { #%s }\n\n", t.Name, t.Name)
		w.members(t)
		w.decl(t.Decl)
		w.text(t.Doc)
		w.examples(t.Examples)
		w.values("", t.Consts)
		w.values("", t.Vars)
		w.funcs(t.Funcs)
		w.funcs(t.Methods)
	}
	return w.b.String()
}

type pageWriter struct {
	b    strings.Builder
	p    *doc.Package
	fset *token.FileSet
}

func (w *pageWriter) printf(format string, args ...any) { fmt.Fprintf(&w.b, format, args...) }

// text writes the doc comment s as Markdown. Its headings are placed below the headings of the
// page.
func (w *pageWriter) text(s string) {
	printer := w.p.Printer()
	printer.HeadingLevel = 4
	printer.HeadingID = func(*comment.Heading) string { return "" }
	printer.DocLinkURL = func(l *comment.DocLink) string { return docLink(w.p.ImportPath, l) }
	w.printf("%s\n", printer.Markdown(w.p.Parser().Parse(s)))
}

// reexported maps an internal package to the public package that re-exports its names.
var reexported = map[string]string{"internal/arena": "shm", "internal/codec": "wire"}

// docLink returns the URL for a doc link on the page of package from, or "" if the name is on no
// page.
func docLink(from string, l *comment.DocLink) string {
	in := func(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }
	if l.ImportPath != "" && !in(l.ImportPath) {
		return l.DefaultURL("https://pkg.go.dev")
	}
	to := cmp.Or(l.ImportPath, from)
	if dir := dirOf(to); !public(dir) {
		if dir = reexported[dir]; dir == "" {
			return ""
		}
		to = path.Join(module, dir)
	}
	url := relative(packagePage(dirOf(from)), packagePage(dirOf(to)))
	if l.Name != "" {
		url += "#" + anchor(l.Recv, l.Name)
	}
	return url
}

// dirOf returns the directory of a package of the module, relative to the module's root.
func dirOf(importPath string) string {
	return path.Join(".", "./"+strings.TrimPrefix(importPath, module))
}

// anchor returns the anchor of a name on its package's page, after its receiver type if recv is
// not "". Pointers and type parameters are left out.
func anchor(recv, name string) string {
	if recv != "" {
		recv, _, _ = strings.Cut(strings.TrimPrefix(recv, "*"), "[")
		return recv + "." + name
	}
	return name
}

func (w *pageWriter) decl(node any) {
	var b bytes.Buffer
	if err := format.Node(&b, w.fset, node); err != nil {
		panic(err) // cannot happen for parsed declarations
	}
	w.printf("%s\n", fenced("go", b.String()))
}

// members writes the anchors of the exported fields of a struct, or of the methods of an interface.
func (w *pageWriter) members(t *doc.Type) {
	for _, spec := range t.Decl.Specs {
		spec, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		var list *ast.FieldList
		switch s := spec.Type.(type) {
		case *ast.StructType:
			list = s.Fields
		case *ast.InterfaceType:
			list = s.Methods
		default:
			continue
		}
		for _, f := range list.List {
			for _, name := range f.Names {
				if name.IsExported() {
					w.printf("<a id=%q></a>", t.Name+"."+name.Name)
				}
			}
		}
	}
	w.printf("\n\n")
}

func (w *pageWriter) values(title string, values []*doc.Value) {
	if title != "" && len(values) > 0 {
		w.printf("## %s\n\n", title)
	}
	for _, v := range values {
		for _, name := range v.Names {
			w.printf("<a id=%q></a>", name)
		}
		w.printf("\n\n")
		w.decl(v.Decl)
		w.text(v.Doc)
	}
}

func (w *pageWriter) funcs(funcs []*doc.Func) {
	for _, f := range funcs {
		name := anchor(f.Recv, f.Name)
		w.printf("### %s { #%s }\n\n", name, name)
		w.decl(f.Decl)
		w.text(f.Doc)
		w.examples(f.Examples)
	}
}

func (w *pageWriter) examples(all []*doc.Example) {
	for _, e := range all {
		w.printf("Example%s:\n\n", strings.TrimRight(" "+strings.ReplaceAll(e.Suffix, "_", " "), " "))
		w.decl(e.Code)
		if e.Output != "" {
			w.printf("It prints\n\n%s\n", fenced("text", e.Output))
		}
	}
}
