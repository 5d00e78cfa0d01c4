// Command site exports the documentation of the repository for a static site generator: every
// Markdown page, a page for each public package, and a page for each source file that a page links
// to. Links are rewritten accordingly.
//
//	go run ./test/site build/.pages
//
// It must be run in the root of the repository. It prints nothing unless it fails. The output
// directory is replaced.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: site FOLDER, in the root of the repository")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// A site holds the files of the repository as slash-separated paths, below root, and writes
// pages below out.
type site struct {
	root  string
	files map[string]bool
	out   string
	code  map[string]bool // source files that pages link to
}

func write(out string) error {
	tracked, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	s := &site{root: ".", files: make(map[string]bool), out: out, code: make(map[string]bool)}
	for file := range strings.SplitSeq(strings.TrimSuffix(string(tracked), "\x00"), "\x00") {
		s.files[file] = true
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	for file := range s.files {
		if hidden(file) {
			continue
		}
		switch path.Ext(file) {
		case ".md":
			err = s.page(file)
		case ".svg", ".png":
			err = s.copy(file)
		}
		if err != nil {
			return err
		}
	}
	if err := s.packages(); err != nil {
		return err
	}
	for file := range s.code {
		if err := s.listing(file); err != nil {
			return err
		}
	}
	return nil
}

// hidden reports whether a file must not become a page, such as the files of the forge and of
// tests.
func hidden(file string) bool {
	return strings.HasPrefix(file, ".") || strings.Contains(file, "testdata/") || strings.Contains(file, "/page/")
}

// page copies a Markdown page of the repository to the site and rewrites its links.
func (s *site) page(file string) error {
	text, err := os.ReadFile(filepath.Join(s.root, file))
	if err != nil {
		return err
	}
	return s.put(file, s.relink(file, string(text)))
}

func (s *site) copy(file string) error {
	b, err := os.ReadFile(filepath.Join(s.root, file))
	if err != nil {
		return err
	}
	return s.put(file, string(b))
}

// listing writes a page that shows a source file.
func (s *site) listing(file string) error {
	text, err := os.ReadFile(filepath.Join(s.root, file))
	if err != nil {
		return err
	}
	language := strings.TrimPrefix(path.Ext(file), ".")
	return s.put(file+".md", fmt.Sprintf("# %s\n\n%s", file, fenced(language, string(text))))
}

func (s *site) put(file, text string) error {
	to := filepath.Join(s.out, file)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, []byte(text), 0o644)
}

// fenced returns text as a Markdown code block, with a fence that is longer than any in the
// text.
func fenced(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fmt.Sprintf("%s%s\n%s\n%s\n", fence, language, strings.TrimSuffix(text, "\n"), fence)
}
