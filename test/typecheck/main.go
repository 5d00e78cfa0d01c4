// Command typecheck type-checks packages and their tests for macOS, Windows and arm64.
//
//	typecheck [package pattern ...]
//
// The default pattern is ./... . It prints type errors and exits with status 1 if there are any. It
// parses all dependencies from source and compiles nothing, so it takes seconds, whereas go vet
// takes minutes because it compiles every dependency for the other system. It reports the errors of
// the compiler's front end; other findings of go vet only differ in files that are specific to a
// system.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// systems are the GOOS and GOARCH values to check. go vet checks the host system.
var systems = [][2]string{{"darwin", "arm64"}, {"windows", "amd64"}, {"linux", "arm64"}}

func main() {
	patterns := os.Args[1:]
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	failed := make([]error, len(systems))
	var all sync.WaitGroup
	for i, s := range systems {
		all.Go(func() { failed[i] = checkSystem(s[0], s[1], patterns) })
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A pkg is a package in the output of go list. A package that is recompiled for a test has an
// additional entry such as "p [p.test]".
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	CgoFiles   []string
	ImportMap  map[string]string
	ForTest    string
	DepOnly    bool
	Module     *struct{ GoVersion string }
	Error      *struct{ Err string }
}

func checkSystem(system, arch string, patterns []string) error {
	packages, err := list(system, arch, patterns)
	if err != nil {
		return fmt.Errorf("%s/%s: %w", system, arch, err)
	}
	c := &checker{
		fset: token.NewFileSet(), done: map[string]*types.Package{"unsafe": types.Unsafe},
		sizes: types.SizesFor("gc", arch),
	}
	var failed []error
	checked := 0
	for _, p := range packages {
		switch {
		case p.Error != nil:
			failed = append(failed, fmt.Errorf("%s/%s: %s: %s", system, arch, p.ImportPath, p.Error.Err))
		case p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test"): // the latter is generated
		default:
			for _, err := range c.check(p) {
				failed = append(failed, fmt.Errorf("%s/%s: %w", system, arch, err))
			}
			if p.whole() {
				checked++
			}
		}
	}
	if checked == 0 {
		failed = append(failed, fmt.Errorf("%s/%s: %v match no package", system, arch, patterns))
	}
	if len(failed) == 0 {
		fmt.Printf("%s/%s: the types of %d packages and tests fit\n", system, arch, checked)
	}
	return errors.Join(failed...)
}

// list returns the packages that match the patterns, their tests and all dependencies, for a
// system and an architecture. Each package follows its imports.
func list(system, arch string, patterns []string) ([]*pkg, error) {
	fields := "-json=ImportPath,Dir,GoFiles,CgoFiles,ImportMap,ForTest,DepOnly,Module,Error"
	cmd := exec.Command("go", append([]string{"list", "-e", "-deps", "-test", fields}, patterns...)...)
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []*pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(pkg)
		if err := d.Decode(p); err == io.EOF {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode the output of go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// whole reports whether the checker must check function bodies too: once for each package that
// matches the patterns and once for its tests.
func (p *pkg) whole() bool {
	path, _, _ := strings.Cut(p.ImportPath, " ")
	own := p.ForTest == "" || path == p.ForTest || path == p.ForTest+"_test"
	return own && !p.DepOnly
}

// A checker checks the packages of one system, one after another. It must be given dependencies
// first.
type checker struct {
	fset  *token.FileSet
	done  map[string]*types.Package // by import path as in go list
	sizes types.Sizes
}

// maxErrors limits the number of reported errors per package.
const maxErrors = 10

func (c *checker) check(p *pkg) []error {
	var failed []error
	var files []*ast.File
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		f, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		files = append(files, f)
	}
	cfg := types.Config{
		Importer:         importer{c, p},
		Sizes:            c.sizes,
		FakeImportC:      true,
		IgnoreFuncBodies: !p.whole(),
		Error:            func(err error) { failed = append(failed, err) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		cfg.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	c.done[p.ImportPath], _ = cfg.Check(path, c.fset, files, nil) // errors go to cfg.Error
	return failed[:min(len(failed), maxErrors)]
}

// An importer resolves the imports of one package to packages that the checker has checked.
type importer struct {
	c *checker
	p *pkg
}

func (i importer) Import(path string) (*types.Package, error) {
	if mapped, ok := i.p.ImportMap[path]; ok {
		path = mapped
	}
	if p := i.c.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("package %s is not there", path)
}
