package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxDependents bounds the packages that are tested because of a package they import. A change of
// a package with more direct dependents is left to the core and the thirds.
const maxDependents = 8

// A pkg is a package of the repository, with the fields of go list.
type pkg struct {
	ImportPath   string
	Dir          string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func (p *pkg) tested() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

func (p *pkg) imports(other string) bool {
	return slices.Contains(p.Imports, other) || slices.Contains(p.TestImports, other) ||
		slices.Contains(p.XTestImports, other)
}

// packages returns the packages of the repository at root, with directories relative to it. The
// environment variable PACKAGES must hold the patterns for go list; the Makefile sets it.
func packages(root string) ([]pkg, error) {
	patterns := strings.Fields(os.Getenv("PACKAGES"))
	if len(patterns) == 0 {
		return nil, errors.New("PACKAGES is empty: want the patterns that make patterns prints")
	}
	fields := "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports"
	cmd := exec.Command("go", append([]string{"list", fields}, patterns...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(patterns, " "), err)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode the output of go list: %w", err)
		}
		if p.Dir, err = filepath.Rel(root, p.Dir); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// raceSet returns the import paths of the packages with tests in a set for the race detector:
// always, or the name of a third. changed are the files that differ from the previous landing;
// it is empty if every third runs. The packages that own a changed file and their direct
// dependents, see [touched], are in always instead of their third.
func (t *table) raceSet(set string, all []pkg, changed []string) []string {
	always := touched(all, changed)
	var paths []string
	for _, p := range all {
		in := t.third(p.Dir)
		if in == "skip" || !p.tested() {
			continue
		}
		if in == "core" || always[p.ImportPath] {
			in = "always"
		}
		if in == set {
			paths = append(paths, p.ImportPath)
		}
	}
	return paths
}

// third returns the race set that lists a directory or, failing that, the nearest folder above
// it. The set core lists only the directories themselves. The default is the last third.
func (t *table) third(dir string) string {
	for d := dir; ; d = path.Dir(d) {
		for set, dirs := range t.race {
			if slices.Contains(dirs, d) && (d == dir || set != "core") {
				return set
			}
		}
		if d == "." {
			return fmt.Sprint(groups)
		}
	}
}

// touched returns the import paths of the packages of all that own one of the files, and of
// their direct dependents unless there are more than maxDependents.
func touched(all []pkg, files []string) map[string]bool {
	byDir := make(map[string]string)
	for _, p := range all {
		byDir[p.Dir] = p.ImportPath
	}
	owners := make(map[string]bool)
	for _, file := range files {
		dir := path.Dir(file)
		for byDir[dir] == "" && dir != "." {
			dir = path.Dir(dir)
		}
		if byDir[dir] != "" {
			owners[byDir[dir]] = true
		}
	}
	both := make(map[string]bool)
	for owner := range owners {
		both[owner] = true
		var dependents []string
		for _, p := range all {
			if p.imports(owner) {
				dependents = append(dependents, p.ImportPath)
			}
		}
		if len(dependents) <= maxDependents {
			for _, p := range dependents {
				both[p] = true
			}
		}
	}
	return both
}
