package main

import (
	"path"
	"regexp"
	"strings"
)

// link matches the target of a Markdown link without its anchor.
var link = regexp.MustCompile(`\]\(([^)#\s]+)`)

// relink returns the text of a page with rewritten links, except in code blocks: links to
// packages lead to the package pages, and links to source files to the pages that show them.
// page is the path of the page. relink records these source files in s.code.
func (s *site) relink(page, text string) string {
	var b strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		switch mark := opening(line); {
		case fence == "" && mark != "":
			fence = mark
		case fence != "" && strings.TrimSpace(line) == fence:
			fence = ""
		case fence == "":
			line = link.ReplaceAllStringFunc(line, func(found string) string {
				return "](" + s.target(page, found[len("]("):])
			})
		}
		b.WriteString(line)
	}
	return b.String()
}

// opening returns the fence, of backquotes, of the code block that a line opens, or "" if it
// opens none.
func opening(line string) string {
	line = strings.TrimSpace(line)
	return line[:len(line)-len(strings.TrimLeft(line, "`"))][:fenceLength(line)]
}

func fenceLength(line string) int {
	if n := len(line) - len(strings.TrimLeft(line, "`")); n >= 3 {
		return n
	}
	return 0
}

// target returns the rewritten target of the link to on a page. It records a source file in
// s.code.
func (s *site) target(page, to string) string {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return to
	}
	file := path.Join(path.Dir(page), to)
	switch {
	case s.files[file] && path.Ext(file) != ".md" && path.Ext(file) != ".svg" && path.Ext(file) != ".png":
		s.code[file] = true
		return to + ".md"
	case s.files[path.Join(file, "README.md")]:
		return path.Join(to, "README.md")
	case s.isPackage(file) && public(file):
		return relative(page, packagePage(file))
	case s.isPackage(file):
		if main := path.Join(file, "main.go"); s.files[main] {
			s.code[main] = true
			return path.Join(to, "main.go.md")
		}
		doc := path.Join(file, "doc.go")
		s.code[doc] = s.files[doc]
		return path.Join(to, "doc.go.md")
	}
	return to
}

// relative returns the relative path from the page with a path to a file of the site.
func relative(page, file string) string {
	return strings.Repeat("../", strings.Count(page, "/")) + file
}
