package archtest

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The size of the screen on which go doc prints a package comment. Its first two rows are a header.
const (
	screenRows    = 24
	screenColumns = 80
	headerRows    = 2
	codeIndent    = 4
	tabColumns    = 8
)

// startWith begins the paragraph that names the functions that a user calls first.
const startWith = "Start with"

var bracketed = regexp.MustCompile(`\[[^\]]*\]`)

// Public reports whether users can import the package of a directory, which is relative to the
// module's root.
func Public(dir string) bool {
	for part := range strings.SplitSeq(dir, "/") {
		switch part {
		case "internal", "cmd", "examples", "docs", "scripts", "test":
			return false
		}
	}
	return true
}

// FirstUse returns the first code block of a package comment, or "" if it has none.
func FirstUse(doc string) string {
	content := new(comment.Parser).Parse(doc).Content
	if at := slices.IndexFunc(content, isCode); at >= 0 {
		return content[at].(*comment.Code).Text
	}
	return ""
}

func isCode(b comment.Block) bool {
	_, ok := b.(*comment.Code)
	return ok
}

// firstScreen returns the violations of a rule: the comment of a public package shows one use
// and then names the functions to start with, all on the first screen of go doc.
func firstScreen(h *house, p *pkg) (bad []string) {
	doc := p.doc()
	if p.name == "" || p.name == "main" || !Public(p.dir) || doc == "" {
		return nil
	}
	parser := &comment.Parser{
		LookupPackage: p.importPath,
		LookupSym:     func(recv, name string) bool { return h.declares(p.dir, recv, name) },
	}
	parsed := parser.Parse(doc)
	at := slices.IndexFunc(parsed.Content, isCode)
	if at < 0 {
		return complain("%s: the package comment has no code block: show one complete use", title(p.dir))
	}
	for line := range strings.Lines(parsed.Content[at].(*comment.Code).Text) {
		if n := shownColumns(line); n > screenColumns {
			bad = append(bad, fmt.Sprintf("%s: the package comment has a line of code that go doc prints on %d "+
				"columns, want at most %d: %s", title(p.dir), n, screenColumns, strings.TrimSpace(line)))
		}
	}
	start, ok := paragraph(parsed.Content, at+1)
	if !ok {
		return append(bad, fmt.Sprintf("%s: the first code block of the package comment is not followed by a "+
			"paragraph that begins %q and links the functions to start with", title(p.dir), startWith))
	}
	bad = append(bad, h.checkLinks(p, start)...)
	screen := new(comment.Printer).Text(&comment.Doc{Content: parsed.Content[:at+2]})
	if rows := headerRows + strings.Count(string(screen), "\n"); rows > screenRows {
		bad = append(bad, fmt.Sprintf("%s: %q ends in row %d of go doc, want at most %d: shorten the text above it",
			title(p.dir), startWith, rows, screenRows))
	}
	return bad
}

// doc returns the text of the package comment in doc.go, or "" if there is none.
func (p *pkg) doc() string {
	for _, f := range p.files {
		if !f.test && f.ast.Doc != nil && path.Base(f.path) == "doc.go" {
			return f.ast.Doc.Text()
		}
	}
	return ""
}

// paragraph returns the paragraph at an index. ok is false if there is none, or if it does not
// begin with startWith.
func paragraph(content []comment.Block, at int) (p *comment.Paragraph, ok bool) {
	if at == len(content) {
		return nil, false
	}
	if p, ok = content[at].(*comment.Paragraph); !ok || len(p.Text) == 0 {
		return nil, false
	}
	first, ok := p.Text[0].(comment.Plain)
	return p, ok && strings.HasPrefix(string(first), startWith+" ")
}

// checkLinks returns the violations of a rule: the paragraph start of p's comment has a link,
// and each link refers to a name of the module. The parser leaves a link to an unknown name as
// plain text.
func (h *house) checkLinks(p *pkg, start *comment.Paragraph) (bad []string) {
	linked := 0
	for _, part := range start.Text {
		switch part := part.(type) {
		case comment.Plain:
			for _, name := range bracketed.FindAllString(string(part), -1) {
				bad = append(bad, fmt.Sprintf("%s: %q links %s, which does not exist or needs a link definition",
					title(p.dir), startWith, name))
			}
		case *comment.DocLink:
			linked++
			dir, ours := h.local(part.ImportPath)
			if part.ImportPath != "" && (!ours || !h.declares(dir, part.Recv, part.Name)) {
				bad = append(bad, fmt.Sprintf("%s: %q links %s of %s, which does not exist",
					title(p.dir), startWith, part.Name, part.ImportPath))
			}
		case *comment.Link:
			linked++
			if !h.declaresURL(part.URL) {
				bad = append(bad, fmt.Sprintf("%s: %q links %s, which is not a name of this module",
					title(p.dir), startWith, part.URL))
			}
		}
	}
	if linked == 0 && len(bad) == 0 {
		return complain("%s: %q links no function", title(p.dir), startWith)
	}
	return bad
}

// declaresURL reports whether a link definition refers to a name of this module.
func (h *house) declaresURL(url string) bool {
	target, ok := strings.CutPrefix(url, "https://pkg.go.dev/")
	imported, symbol, hasSymbol := strings.Cut(target, "#")
	dir, ours := h.local(imported)
	if !ok || !hasSymbol || !ours {
		return false
	}
	if recv, name, isMethod := strings.Cut(symbol, "."); isMethod {
		return h.declares(dir, recv, name)
	}
	return h.declares(dir, "", symbol)
}

// importPath returns the path of an import of p by the name of the package, or "" for p's own
// name. ok is false if the name is unknown. It is the LookupPackage of a [comment.Parser].
func (p *pkg) importPath(name string) (imported string, ok bool) {
	if name == p.name {
		return "", true
	}
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, spec := range f.ast.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err == nil && (spec.Name == nil && path.Base(to) == name || spec.Name != nil && spec.Name.Name == name) {
				return to, true
			}
		}
	}
	return comment.DefaultLookupPackage(name)
}

// declares reports whether the package in dir declares a name, or, if recv is not empty, the
// type recv a method with this name.
func (h *house) declares(dir, recv, name string) bool {
	p := h.byDir[path.Clean(dir)]
	if p == nil {
		return false
	}
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.Name == name && receiverName(d) == recv {
					return true
				}
			case *ast.GenDecl:
				if recv == "" && slices.ContainsFunc(d.Specs, func(s ast.Spec) bool { return specDeclares(s, name) }) {
					return true
				}
			}
		}
	}
	return false
}

// receiverName returns the name of the receiver's type, or "" for a function.
func receiverName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	for e := d.Recv.List[0].Type; ; {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func specDeclares(s ast.Spec, name string) bool {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return s.Name.Name == name
	case *ast.ValueSpec:
		return slices.ContainsFunc(s.Names, func(i *ast.Ident) bool { return i.Name == name })
	}
	return false
}

// shownColumns returns the columns that go doc needs on a terminal for a line of code in a
// package comment, with its indentation.
func shownColumns(line string) int {
	columns := codeIndent
	for _, r := range strings.TrimRight(line, "\n") {
		columns++
		if r == '\t' {
			columns = (columns + tabColumns - 1) / tabColumns * tabColumns
		}
	}
	return columns
}
