package main

import (
	"path"
	"regexp"
	"strings"
)

// link matches what is in the parentheses of a link of Markdown, without its anchor.
var link = regexp.MustCompile(`\]\(([^)#\s]+)`)

// relink changes the links of a page outside its code: to a package, to the page of the package; to
// a file of code, to the page that shows it.
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

// opening returns the fence that a line opens, if it does.
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

// target returns where a link of a page leads on the site.
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

// relative returns the path from a page to another file.
func relative(page, file string) string {
	return strings.Repeat("../", strings.Count(page, "/")) + file
}
