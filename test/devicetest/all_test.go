package devicetest

import (
	"go/ast"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/test/testutil"
)

// TestConform_LeavesNothingOfATensorOut reads package tensor's source for what it does with a
// Tensor: Conform has to know how each is on a device.
func TestConform_LeavesNothingOfATensorOut(t *testing.T) {
	known := map[string]bool{}
	for _, name := range elsewhere {
		known[name] = true
	}
	for name := range whole {
		known[name] = true
	}
	for name := range refused {
		known[name] = true
	}
	for name := range singles {
		known[name] = true
	}
	for name := range pairs {
		known[name] = true
	}
	for _, o := range device.Ops() {
		known[o.Name] = true
	}
	found := 0
	for _, file := range testutil.ParseDir(t, "../../tensor") {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() {
				continue
			}
			name := f.Name.Name
			switch {
			case f.Recv != nil && mentions(f.Recv):
				name = "." + name
			case f.Recv != nil || !mentions(f.Type.Params):
				continue
			}
			if found++; !known[name] {
				t.Errorf("%s: nothing says what it does on a device", name)
			}
		}
	}
	if found < len(whole) {
		t.Errorf("%d functions of tensors, and %d are known", found, len(whole))
	}
}

// mentions reports whether one of the fields is made of Tensors.
func mentions(l *ast.FieldList) bool {
	return slices.ContainsFunc(l.List, func(f *ast.Field) (yes bool) {
		ast.Inspect(f.Type, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			yes = yes || ok && id.Name == "Tensor"
			return true
		})
		return yes
	})
}
