package archtest_test

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// shown are the signatures of public packages that name a type of an internal package all the same,
// with the reason.
var shown = map[string]string{
	"data/image.DecodeError":     "the decoders' error, by another name",
	"encoding/pt.PackedSequence": "a value of Python's, by another name",
	"encoding/pt.Record":         "a value of Python's, by another name",
	"torch.Array":                "a value of Python's, by another name",
	"torch.ByteArray":            "a value of Python's, by another name",
	"torch.Child":                "its arguments are a tuple of Python's",
	"torch.Device":               "a value of Python's, by another name",
	"torch.Dict":                 "a value of Python's, by another name",
	"torch.Container":            "All returns a dict of Python's",
	"torch.Global":               "a value of Python's, by another name",
	"torch.NewDict":              "it makes a value of Python's",
	"torch.NewSet":               "it makes a value of Python's",
	"torch.PackedSequence":       "a value of Python's, by another name",
	"torch.Record":               "a value of Python's, by another name",
	"torch.RemoteError":          "its arguments are a tuple of Python's",
	"torch.Scalar":               "a value of Python's, by another name",
	"torch.Set":                  "a value of Python's, by another name",
	"torch.Size":                 "a value of Python's, by another name",
	"torch.Tuple":                "a value of Python's, by another name",
	"torch.Worker":               "its environment is a dict of Python's",
}

// A user cannot write the name of a type of an internal package, nor read its documentation.
func TestSurface_NamesNoInternalType(t *testing.T) {
	for _, dir := range publicPackages(t) {
		p := imported(t, dir)
		for _, name := range p.Scope().Names() {
			o := p.Scope().Lookup(name)
			if !o.Exported() || shown[strings.TrimPrefix(p.Path(), module+"/")+"."+name] != "" {
				continue
			}
			if where := internalIn(o); where != "" {
				t.Errorf("%s.%s: its signature names %s, which users cannot", p.Path(), name, where)
			}
		}
	}
}

// A signature that does name one is found.
func TestSurface_FindsInternalTypes(t *testing.T) {
	hidden := types.NewTypeName(token.NoPos, types.NewPackage(module+"/internal/x", "x"), "T", nil)
	h := types.NewNamed(hidden, types.NewStruct(nil, nil), nil)
	for _, found := range []types.Type{
		h, types.NewPointer(h), types.NewMap(types.Typ[types.Int], h), types.NewChan(types.SendRecv, h),
		types.NewSignatureType(nil, nil, nil, types.NewTuple(types.NewVar(0, nil, "a", types.NewSlice(h))), nil, false),
		types.NewStruct([]*types.Var{types.NewField(0, nil, "F", h, false)}, nil),
	} {
		if internalType(found, map[types.Type]bool{}) == "" {
			t.Errorf("%v: no internal type is found", found)
		}
	}
	private := types.NewStruct([]*types.Var{types.NewField(0, nil, "f", h, false)}, nil)
	if where := internalType(private, map[types.Type]bool{}); where != "" {
		t.Errorf("a field that is not exported shows %s", where)
	}
}

// everyPackage is the pattern of the packages of all modules of the workspace. Without a go.work
// file these are the packages of the one module.
const everyPackage = "work"

// exports maps an import path to the file with the package's export data, which the go tool writes.
var exports map[string]string

var imports types.Importer

// publicPackages returns the import paths of the packages that users can import.
func publicPackages(t *testing.T) (paths []string) {
	t.Helper()
	exports = make(map[string]string)
	list := goTool(t, "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}} {{.Name}}", everyPackage)
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		if len(f) < 3 { // package unsafe
			continue
		}
		exports[f[0]] = f[1]
		dir, ours := strings.CutPrefix(f[0]+"/", module)
		if ours && f[2] != "main" && !strings.Contains(dir, "/internal/") &&
			!strings.Contains(dir, "/examples/") && !strings.HasPrefix(dir, "/test/") {
			paths = append(paths, f[0])
		}
	}
	if !slices.Contains(paths, path.Join(module, "ipc")) {
		t.Fatalf("ipc is not among the public packages %v", paths)
	}
	imports = importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	return paths
}

func imported(t *testing.T, path string) *types.Package {
	p, err := imports.Import(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// internalIn returns the internal type that the declaration of o shows, if any.
func internalIn(o types.Object) string {
	seen := make(map[types.Type]bool)
	name, ok := o.(*types.TypeName)
	if !ok {
		return internalType(o.Type(), seen)
	}
	if name.IsAlias() {
		return internalType(o.Type(), seen)
	}
	if where := internalType(o.Type().Underlying(), seen); where != "" {
		return where
	}
	methods := types.NewMethodSet(types.NewPointer(o.Type()))
	for i := range methods.Len() {
		m := methods.At(i).Obj()
		if !m.Exported() {
			continue
		}
		if where := internalType(m.Type(), seen); where != "" {
			return m.Name() + ": " + where
		}
	}
	return ""
}

func isInternal(p *types.Package) bool {
	return p != nil && strings.HasPrefix(p.Path(), module) && strings.Contains(p.Path()+"/", "/internal/")
}

// internalType returns the first type of an internal package of which t is made, as far as users
// see it.
func internalType(t types.Type, seen map[types.Type]bool) string {
	if seen[t] {
		return ""
	}
	seen[t] = true
	if n, ok := t.(*types.Named); ok && isInternal(n.Obj().Pkg()) {
		return fmt.Sprint(t)
	}
	for _, part := range partsOf(t) {
		if where := internalType(part, seen); where != "" {
			return where
		}
	}
	return ""
}

// partsOf returns the types that t is made of: for a named type its arguments, since its
// declaration is looked at where it stands.
func partsOf(t types.Type) (parts []types.Type) {
	switch t := t.(type) {
	case *types.Alias: // users can write what it stands for
		return []types.Type{t.Rhs()}
	case *types.Named:
		for i := range t.TypeArgs().Len() {
			parts = append(parts, t.TypeArgs().At(i))
		}
	case *types.Map:
		return []types.Type{t.Key(), t.Elem()}
	case interface{ Elem() types.Type }:
		return []types.Type{t.Elem()}
	case *types.Signature:
		for i := range t.TypeParams().Len() {
			parts = append(parts, t.TypeParams().At(i).Constraint())
		}
		parts = append(parts, t.Params(), t.Results())
	case *types.Tuple:
		for i := range t.Len() {
			parts = append(parts, t.At(i).Type())
		}
	case *types.Struct:
		for i := range t.NumFields() {
			if t.Field(i).Exported() {
				parts = append(parts, t.Field(i).Type())
			}
		}
	case *types.Interface:
		for i := range t.NumEmbeddeds() {
			parts = append(parts, t.EmbeddedType(i))
		}
		for i := range t.NumExplicitMethods() {
			if m := t.ExplicitMethod(i); m.Exported() {
				parts = append(parts, m.Type())
			}
		}
	}
	return parts
}
