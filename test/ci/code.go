package main

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// directive matches the comments that the go command and the compiler read.
var directive = regexp.MustCompile(`^//(go:|export |line |[ \t]*\+build )|^/\*line `)

// sameCode reports whether before and now, two versions of the Go file name, differ in their
// comments only. It returns false if one cannot be scanned. In a test file comments count,
// because the comment of an example states its output.
func sameCode(name, before, now string) bool {
	if before == now {
		return true
	}
	if strings.HasSuffix(name, "_test.go") {
		return false
	}
	a, b := newCodeScanner(before), newCodeScanner(now)
	for {
		x, y := a.next(), b.next()
		if x != y || a.errors+b.errors > 0 {
			return false
		}
		if x.kind == token.EOF {
			return true
		}
	}
}

// A lexeme is a token with its text.
type lexeme struct {
	kind token.Token
	text string
}

// A codeScanner returns the tokens of a Go file without its comments, except directives. errors
// counts the errors so far.
type codeScanner struct {
	scanner.Scanner
	errors int
}

func newCodeScanner(text string) *codeScanner {
	s := new(codeScanner)
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, []byte(text), func(token.Position, string) { s.errors++ }, scanner.ScanComments)
	return s
}

func (s *codeScanner) next() lexeme {
	for {
		_, kind, text := s.Scan()
		if kind == token.COMMENT && !directive.MatchString(text) {
			continue
		}
		return lexeme{kind, text}
	}
}
