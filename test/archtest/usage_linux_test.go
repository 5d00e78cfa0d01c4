package archtest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/test/archtest"
)

// The first code block of each package comment is a complete use: a file, or statements of a
// function that has a ctx and returns an error.
func TestPackageComments_HaveCodeThatCompiles(t *testing.T) {
	paths := publicPackages(t)
	known := packagesByName(t, paths)
	for _, p := range paths {
		dir := path.Clean(strings.TrimPrefix(strings.TrimPrefix(p, module), "/"))
		if !archtest.Public(dir) {
			continue
		}
		doc, err := parser.ParseFile(token.NewFileSet(), "", read(t, houseFS, path.Join(dir, "doc.go")),
			parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range compileUse(archtest.FirstUse(doc.Doc.Text()), known) {
			t.Errorf("%s: the first code block of the package comment does not compile: %s", dir, problem)
		}
	}
}

func TestPackageComments_FindsCodeThatDoesNotCompile(t *testing.T) {
	known := packagesByName(t, publicPackages(t))
	for _, good := range []string{
		"q, err := ipc.NewQueue[int](1)\nif err != nil {\n\treturn err\n}\ndefer q.Close()\n",
		"func main() { shoal.Main(run) }\n\nfunc run(ctx context.Context) error { return ctx.Err() }\n",
	} {
		if problems := compileUse(good, known); problems != nil {
			t.Errorf("%q: %s", good, problems)
		}
	}
	for bad, want := range map[string]string{
		"q, err := ipc.NewQueue[int](1)\n":   "declared and not used",
		"fmt.Println(x)\n":                   "undefined: x",
		"err := ipc.Nothing()\nreturn err\n": "Nothing",
		"for batch := range … {\n":           "illegal character",
		"func main() { shoal.Main(run) }\n":  "undefined: run",
	} {
		if got := fmt.Sprint(compileUse(bad, known)); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want an error with %q", bad, got, want)
		}
	}
}

// packagesByName maps the names by which code refers to packages to import paths. Of packages with
// one name, the public ones of this module come first, then the one with the shortest path.
func packagesByName(t *testing.T, public []string) map[string]string {
	t.Helper()
	known := make(map[string]string)
	for _, p := range slices.Sorted(maps.Keys(exports)) {
		name := path.Base(p)
		internal := strings.Contains("/"+p+"/", "/internal/") || strings.HasPrefix(p, "vendor/")
		if old, ok := known[name]; !internal && (!ok || len(p) < len(old)) {
			known[name] = p
		}
	}
	for _, p := range public {
		known[imported(t, p).Name()] = p
	}
	known["rand"] = "math/rand/v2"
	return known
}

// compileUse returns the errors of a code block.
func compileUse(code string, known map[string]string) (problems []string) {
	set := token.NewFileSet()
	body := code
	f, err := parser.ParseFile(set, "use.go", "package use\n"+body, 0)
	if err != nil {
		body = "func use(ctx context.Context) error {\n" + code + "\nreturn nil\n}\n"
		if f, err = parser.ParseFile(set, "use.go", "package use\n"+body, 0); err != nil {
			return []string{err.Error()}
		}
	}
	unresolved := make(map[string]bool)
	for _, i := range f.Unresolved {
		unresolved[i.Name] = true
	}
	var needed []string
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && unresolved[x.Name] && known[x.Name] != "" {
				needed = append(needed, known[x.Name])
			}
		}
		return true
	})
	slices.Sort(needed)
	var head strings.Builder
	head.WriteString("package use\n")
	for _, p := range slices.Compact(needed) {
		fmt.Fprintf(&head, "import %q\n", p)
	}
	if f, err = parser.ParseFile(set, "use.go", head.String()+body, parser.SkipObjectResolution); err != nil {
		return []string{err.Error()}
	}
	config := types.Config{Importer: imports, Error: func(err error) { problems = append(problems, err.Error()) }}
	config.Check("use", set, []*ast.File{f}, nil)
	return problems
}
