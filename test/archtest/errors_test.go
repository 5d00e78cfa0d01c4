package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// An errorRow is a row of docs/errors.md, of an error that is a variable.
var errorRow = regexp.MustCompile("(?m)^\\| `(\\w+\\.Err\\w+)` \\| (.*?) \\| (.+?) \\| (.+) \\|$")

// errorName is that of an error. CUDA's are called ErrorOutOfMemory and so on; for them the page
// refers to NVIDIA's documentation.
var errorName = regexp.MustCompile(`^Err[A-Z]`)

// TestErrors_AreOnTheirPage reads the exported errors of all public packages, and wants each on
// docs/errors.md with its text, and each type of an error with its name.
func TestErrors_AreOnTheirPage(t *testing.T) {
	h, err := load("github.com/shoal-mp/shoal", os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	rows := map[string]string{} // the text of each error, as the page has it
	for _, row := range errorRow.FindAllStringSubmatch(page, -1) {
		if _, twice := rows[row[1]]; twice {
			t.Errorf("docs/errors.md has two rows for %s", row[1])
		}
		rows[row[1]] = row[2]
	}
	kinds := 0
	for _, p := range h.packages {
		if !Public(p.dir) {
			continue
		}
		for name := range errorValues(p) {
			is := p.name + "." + name
			text, ok := errorText(h, p, name)
			switch shown, has := rows[is]; {
			case !ok:
				t.Errorf("%s: what is its text?", is)
			case !has:
				t.Errorf("docs/errors.md has no row for %s: %s", is, text)
			case shown != text:
				t.Errorf("docs/errors.md says %q of %s, whose text is %q", shown, is, text)
			}
			delete(rows, is)
		}
		for _, name := range errorTypes(p) {
			kinds++
			if !strings.Contains(page, "\n| `*"+p.name+"."+name+"` |") {
				t.Errorf("docs/errors.md has no row for *%s.%s", p.name, name)
			}
		}
	}
	for is := range rows {
		t.Errorf("docs/errors.md has a row for %s, which there is not", is)
	}
	if kinds < 10 {
		t.Errorf("%d types of errors were found", kinds)
	}
}

// errorValues returns the initial values of the exported errors that are variables of a package.
func errorValues(p *pkg) map[string]ast.Expr {
	found := map[string]ast.Expr{}
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, s := range d.Specs {
				s := s.(*ast.ValueSpec)
				for i, name := range s.Names {
					if errorName.MatchString(name.Name) && i < len(s.Values) {
						found[name.Name] = s.Values[i]
					}
				}
			}
		}
	}
	return found
}

// errorText returns the text of an error by the call that makes it, or by the one that makes the
// error of another package that it is. A text says of an error that it wraps nothing here.
func errorText(h *house, p *pkg, name string) (text string, ok bool) {
	switch v := errorValues(p)[name].(type) {
	case *ast.CallExpr:
		text, ok = literal(v.Args[0])
		return strings.TrimSuffix(strings.TrimPrefix(text, "%w: "), ": %w"), ok
	case *ast.SelectorExpr:
		for _, dir := range h.needs(p) {
			if in := h.byDir[dir]; in != nil && path.Base(dir) == v.X.(*ast.Ident).Name {
				if text, ok := errorText(h, in, v.Sel.Name); ok {
					return text, true
				}
			}
		}
	}
	return "", false
}

// literal returns a text that may be written in several parts.
func literal(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		a, ok1 := literal(e.X)
		b, ok2 := literal(e.Y)
		return a + b, ok1 && ok2
	}
	return "", false
}

// errorTypes returns the exported types of a package that are errors.
func errorTypes(p *pkg) (names []string) {
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && !f.test && d.Recv != nil && d.Name.Name == "Error" {
				if name := receiver(d.Recv.List[0].Type); ast.IsExported(name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// alone is the one package with errors that does not link package wire: it only fetches files.
const alone = "data/download"

// TestErrors_CrossProcesses wants each exported error of the public packages to be registered.
// Then errors.Is finds it in the starter of the worker that returned it, as docs/errors.md says.
func TestErrors_CrossProcesses(t *testing.T) {
	h, err := load("github.com/shoal-mp/shoal", os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	crosses := map[string]bool{}
	for _, p := range h.packages {
		for _, f := range p.files {
			for _, d := range f.ast.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && !f.test && d.Recv == nil && d.Name.Name == "init" {
					ast.Inspect(d, func(n ast.Node) bool {
						crosses[originOf(h, p, n)] = true
						return true
					})
				}
			}
		}
	}
	for _, p := range h.packages {
		for name := range errorValues(p) {
			origin := originOf(h, p, &ast.Ident{Name: name})
			if Public(p.dir) && p.dir != alone && !crosses[origin] {
				t.Errorf("%s.%s loses its identity on the way to another process: no init registers it", p.name, name)
			}
		}
	}
}

// originOf returns the package and the name of the error that n names, or nothing.
func originOf(h *house, p *pkg, n ast.Node) string {
	switch n := n.(type) {
	case *ast.Ident:
		switch v := errorValues(p)[n.Name].(type) {
		case *ast.CallExpr:
			return p.dir + " " + n.Name
		case *ast.SelectorExpr:
			return originOf(h, p, v)
		}
	case *ast.SelectorExpr:
		of, ok := n.X.(*ast.Ident)
		for _, dir := range h.needs(p) {
			if in := h.byDir[dir]; ok && in != nil && path.Base(dir) == of.Name {
				if origin := originOf(h, in, n.Sel); origin != "" {
					return origin
				}
			}
		}
	}
	return ""
}

// receiver returns the name of a method's type.
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
