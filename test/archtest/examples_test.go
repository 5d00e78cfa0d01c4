package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	pathpkg "path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// withoutExample are types of those packages that users do not construct, with what they are.
var withoutExample = map[string]string{
	".Identity": "for other packages",
	"nn.Pass":   "a part of a Recurrent", "nn.Recurrent": "a part of LSTM and GRU",
	"pool.Pool": "what New makes", "pool.IMap": "what ImapAsync returns",
	"shm.Stats": "what shoal.MemoryStats returns", "shm.Report": "what shoal.Inspect returns",
	"shm.Holder": "a part of a Report", "shm.Unread": "a part of a SpaceError",
	"data.Any": "a field of data sets of data sets", "data.Kind": "constants",
	"data.Sample": "what data sets return", "data.Info": "what WorkerInfo returns",
	"data.PartState":        "a part of a State",
	"data/datasets.Entry":   "what a Map yields",
	"data/image.Arithmetic": "constants", "data/image.PadMode": "constants",
	"dist.DDPOptions": "DistributedDataParallel's", "dist.Loss": "DataParallel's",
	"ipc.Conn":               "what Dial and Accept return",
	"data/service.HostStats": "what Host.Stats returns", "data/service.HostStatus": "a part of Stats",
	"nats.QueueStats": "what Queue.Stats returns", "nats.Entry": "what Store.Watch yields",
	"nats.Conn": "what Connect returns", "nats.DeadLetter": "what DeadLetters yields",
	"dist.Work": "what an Async returns", "dist.Op": "constants", "dist.RankError": "an error",
	"torch.ProcessError": "an error",
	"torch.RemoteError":  "an error",
	"torch.StoreError":   "an error",
	"torch.CUDATensor":   "what Conn.Recv returns",
	"torch.Conn":         "what Dial returns: ExampleListener", "encoding/hdf5.File": "what Open returns",
	"encoding/npy.Info":         "what Archive.List returns",
	"encoding/safetensors.File": "what Open returns",
	"encoding/safetensors.Info": "what File.Info returns",
	"encoding/hdf5.Writer":      "what Create and Append return",
	"torch.Python":              "of a process of Python, which go test may not have",
	"torch.Process":             "of a process of Python, which go test may not have",
	"torch.Manager":             "of a process of Python, which go test may not have",
	"torch.Proxy":               "of a process of Python, which go test may not have",
	"torch.Container":           "of a process of Python, which go test may not have",
	"torch.Keywords":            "of a process of Python, which go test may not have",
	"torch.OpenStream":          "a field of Child",
	"torch.OpenValueStream":     "a field of Child",
	"torch.Collate":             "a field of Child",
	"torch.Store":               "what DialStore returns: ExampleServeStore",
}

// exampled are the packages whose types have examples.
var exampled = []string{".", "pool", "shm", "data", "data/datasets", "data/image", "nn", "optim", "dist",
	"tensor", "cuda", "ipc", "ipc/pickle", "manager", "autograd", "torch", "encoding/hdf5", "encoding/npy",
	"encoding/pt",
	"encoding/python", "encoding/safetensors", "nats", "data/service"}

// TestTypesThatUsersConstructHaveExamples reads the exported types that are no interfaces.
func TestTypesThatUsersConstructHaveExamples(t *testing.T) {
	for _, dir := range exampled {
		types, examples := declared(t, dir)
		if len(types) == 0 || len(examples) == 0 {
			t.Fatalf("%s has %d types and %d examples", dir, len(types), len(examples))
		}
		for name := range types {
			reason, excused := withoutExample[dir+"."+name]
			if dir == "." {
				reason, excused = withoutExample["."+name]
				delete(withoutExample, "."+name)
			}
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

// exampleOf reports whether a type has an example: one of its name, of its constructor or a method,
// or one that shows it.
func exampleOf(name string, examples map[string]string) bool {
	shown := regexp.MustCompile(`\b(New|Open)?` + name + `\b`)
	for example, text := range examples {
		if example == name || strings.HasPrefix(example, name+"_") || strings.HasPrefix(example, "New"+name) ||
			shown.MatchString(text) {
			return true
		}
	}
	return false
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
		text, err := fs.ReadFile(houseFS, pathpkg.Join(dir, filepath.Base(path)))
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
