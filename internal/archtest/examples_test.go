package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// withoutExample are types of those packages that nobody constructs, or that the example of what
// they are a part of has.
var withoutExample = map[string]string{
	"optim.AdamOptions": "Adam", "optim.RMSpropOptions": "RMSprop", "optim.AdagradOptions": "Adagrad",
	"nn.NoParams": "embedded", "nn.Pass": "a part of a Recurrent", "nn.Recurrent": "a part of LSTM and GRU",
	"dist.DDPOptions": "DistributedDataParallel", "dist.Loss": "DataParallel",
	"dist.Work": "what an Async returns", "dist.Op": "constants",
	"dist.RankError": "an error",
}

// TestTypesThatUsersConstructHaveExamples reads the packages of which one trains.
func TestTypesThatUsersConstructHaveExamples(t *testing.T) {
	for _, dir := range []string{"nn", "optim", "dist"} {
		types, examples := declared(t, dir)
		if len(types) < 5 || len(examples) < 5 {
			t.Fatalf("%s has %d types and %d examples", dir, len(types), len(examples))
		}
		for name := range types {
			reason, excused := withoutExample[dir+"."+name]
			if has := exampleOf(name, examples); !has && !excused {
				t.Errorf("%s.%s has no example: write an Example%[2]s that go test runs", dir, name)
			} else if has && excused {
				t.Errorf("%s.%s has an example: take it off the list, where it says %q", dir, name, reason)
			}
			delete(withoutExample, dir+"."+name)
		}
	}
	for name := range withoutExample {
		t.Errorf("%s is on the list, and not there", name)
	}
}

// exampleOf reports whether a type, its constructor, or a method of it has an example, or the whole
// package's shows it.
func exampleOf(name string, examples map[string]string) bool {
	for example := range examples {
		if example == name || strings.HasPrefix(example, name+"_") || strings.HasPrefix(example, "New"+name) {
			return true
		}
	}
	return strings.Contains(examples[""], name)
}

// declared returns the exported types of a package that are no interfaces, and its examples by what
// is behind "Example", with their text.
func declared(t *testing.T, dir string) (types map[string]bool, examples map[string]string) {
	t.Helper()
	types, examples = map[string]bool{}, map[string]string{}
	files, err := filepath.Glob("../../" + dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		text, err := fs.ReadFile(houseFS, dir+"/"+filepath.Base(path))
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if name, ok := strings.CutPrefix(d.Name.Name, "Example"); ok && d.Recv == nil {
					examples[name] += string(text[set.Position(d.Pos()).Offset:set.Position(d.End()).Offset])
				}
			case *ast.GenDecl:
				if !strings.HasSuffix(path, "_test.go") {
					addTypes(types, d)
				}
			}
		}
	}
	return types, examples
}

func addTypes(types map[string]bool, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
			if _, isInterface := s.Type.(*ast.InterfaceType); !isInterface {
				types[s.Name.Name] = true
			}
		}
	}
}
