package archtest

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A house holds all packages of a module, as [load] reads them.
type house struct {
	module   string
	packages []*pkg // in order of dir
	byDir    map[string]*pkg
}

// A pkg is a directory with Go files, for all systems and build tags.
type pkg struct {
	dir   string
	name  string // empty if there are only tests
	files []file
}

type file struct {
	path    string
	test    bool
	ast     *ast.File
	imports []string
}

// load parses every Go file of the module with the import path module and the file tree root,
// for all systems and build tags. It skips the same files as the go tool: testdata, names that
// begin with a dot or underscore, nested modules, and files tagged "ignore". It returns an error
// if a file cannot be read or parsed.
func load(module string, root fs.FS) (*house, error) {
	h := &house{module: module, byDir: make(map[string]*pkg)}
	workspace, err := readWorkspace(root)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && outside(root, name, workspace) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" || hidden(name) {
			return nil
		}
		return h.add(root, name)
	})
	slices.SortFunc(h.packages, func(a, b *pkg) int { return cmp.Compare(a.dir, b.dir) })
	return h, err
}

// readWorkspace returns the directories that go.work uses, or nil if there is no go.work.
func readWorkspace(root fs.FS) (dirs []string, err error) {
	text, err := fs.ReadFile(root, "go.work")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		if dir := strings.TrimSpace(line); strings.HasPrefix(dir, "./") {
			dirs = append(dirs, path.Clean(dir))
		}
	}
	return dirs, err
}

// outside reports whether load must skip a directory, for example a module that is not in
// workspace, the directories of go.work.
func outside(root fs.FS, dir string, workspace []string) bool {
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil && !slices.Contains(workspace, dir) || hidden(dir) || path.Base(dir) == "testdata" ||
		path.Base(dir) == "vendor"
}

func hidden(name string) bool { return strings.ContainsAny(path.Base(name)[:1], "._") }

func (h *house) add(root fs.FS, name string) error {
	src, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	tree, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	if ignored(tree) {
		return nil
	}
	f := file{path: name, test: strings.HasSuffix(name, "_test.go"), ast: tree}
	for _, i := range tree.Imports {
		to, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", name, i.Path.Value, err)
		}
		f.imports = append(f.imports, to)
	}
	dir := path.Dir(name)
	p := h.byDir[dir]
	if p == nil {
		p = &pkg{dir: dir}
		h.byDir[dir] = p
		h.packages = append(h.packages, p)
	}
	if !f.test {
		p.name = tree.Name.Name
	}
	p.files = append(p.files, f)
	return nil
}

// ignored reports whether a file is excluded from every build, as a program that is only run by its
// file name.
func ignored(tree *ast.File) bool {
	for _, group := range tree.Comments {
		for _, c := range group.List {
			if c.Pos() > tree.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			if x, err := constraint.Parse(c.Text); err == nil && x.String() == "ignore" {
				return true
			}
		}
	}
	return false
}

// local returns the directory for an import path, relative to the module's root. ok is false if
// the path is not in this module.
func (h *house) local(imported string) (dir string, ok bool) {
	if imported == h.module {
		return ".", true
	}
	return strings.CutPrefix(imported, h.module+"/")
}

// needs returns the directories of this module that p imports outside of its tests, sorted and
// without duplicates.
func (h *house) needs(p *pkg) (dirs []string) {
	for _, f := range p.files {
		for _, i := range f.imports {
			if dir, ok := h.local(i); ok && !f.test {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
