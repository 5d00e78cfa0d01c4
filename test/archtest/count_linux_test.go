package archtest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
)

// coreLimit is the limit of the number of exported names of all public packages together, except
// those in ownLimits. Lower it whenever names are removed.
const coreLimit = 1672

// ownLimits are the limits of the packages that the core does not need.
var ownLimits = map[string]int{
	"data/service": 35,
	"ipc/pickle":   11,
	"ipc/tcp":      2,
	"metrics":      5,
	"nats":         49,
	"nats/broker":  9,
	"shoallog":     1,
	"shoalotel":    9,
	"trace":        8,
}

// TestSurface_StaysSmall counts the exported names of each public package, and compares them with
// the table in ARCHITECTURE.md.
func TestSurface_StaysSmall(t *testing.T) {
	var rows strings.Builder
	counts := exportedNames(t)
	core := 0
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		n := counts[dir]
		fmt.Fprintf(&rows, "| `%s` | %d |\n", dir, n)
		limit, own := ownLimits[dir]
		if !own {
			core += n
		} else if n > limit {
			t.Errorf("%s has %d exported names, want at most %d", dir, n, limit)
		}
	}
	if core > coreLimit {
		t.Errorf("the core has %d exported names, want at most %d", core, coreLimit)
	}
	for dir := range ownLimits {
		if counts[dir] == 0 {
			t.Errorf("ownLimits has %s, which is not a public package with exported names", dir)
		}
	}
	fmt.Fprintf(&rows, "| the core | %s |\n", thousands(core))
	page, err := fs.ReadFile(houseFS, "ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := "| package | names |\n|---|---|\n" + rows.String() + "\n"; !strings.Contains(string(page), table) {
		t.Errorf("ARCHITECTURE.md does not have the table of exported names. It should be:\n%s", table)
	}
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// exportedNames returns the number of exported names of each public package that has any, by its
// directory in the repository.
func exportedNames(t *testing.T) map[string]int {
	counts := make(map[string]int)
	for _, pkg := range publicPackages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
		if dir == "" {
			dir = "shoal"
		}
		if n := countNames(imported(t, pkg)); n > 0 {
			counts[dir] = n
		}
	}
	return counts
}

// countNames returns the number of exported functions, types and methods of a package.
func countNames(p *types.Package) (n int) {
	for _, name := range p.Scope().Names() {
		switch o := p.Scope().Lookup(name).(type) {
		case *types.Func:
			if o.Exported() {
				n++
			}
		case *types.TypeName:
			if o.Exported() {
				n += 1 + countMethods(o)
			}
		}
	}
	return n
}

// countMethods returns the number of exported methods that a value of a type has. It counts methods
// that are promoted from any embedded field, exported or not, because a user can call them all. Of
// an interface, it counts the methods that its declaration lists. An alias has the methods of an
// internal type; those of a public type are counted where that type is declared.
func countMethods(o *types.TypeName) (n int) {
	named, ok := types.Unalias(o.Type()).(*types.Named)
	if !ok || o.IsAlias() && !isInternal(named.Obj().Pkg()) {
		return 0
	}
	if i, ok := named.Underlying().(*types.Interface); ok {
		for m := range i.ExplicitMethods() {
			if m.Exported() {
				n++
			}
		}
		return n
	}
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if m.Obj().Exported() {
			n++
		}
	}
	return n
}

// A gauge that overlooks promoted methods invites code that hides them.
func TestSurface_CountsPromotedMethods(t *testing.T) {
	const src = `package p

type Seen struct{ hidden }
type hidden struct{ Deeper }
type Deeper struct{}

func (*hidden) Promoted() {}
func (hidden) unexported() {}
func (Deeper) Twice()     {}

type Generic[T any] struct{ inner[T] }
type inner[T any] struct{}

func (*inner[T]) Promoted() {}

type Listed interface {
	Explicit()
	interface{ Embedded() }
	unexported()
}

type Again = Seen

func Func() {}
func function() {}
`
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := new(types.Config).Check("p", files, []*ast.File{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Seen, its Promoted and Twice; Deeper and its Twice; Generic and its Promoted; Listed and its
	// Explicit; Again; Func.
	if got, want := countNames(p), 3+2+2+2+1+1; got != want {
		t.Errorf("countNames = %d, want %d", got, want)
	}
}
