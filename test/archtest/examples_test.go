package archtest_test

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/test/archtest"
)

// withoutExample are exported types that need no example of their own, with the reason.
var withoutExample = map[string]string{
	".Identity":                 "Current returns it, for other packages",
	"data.Info":                 "WorkerInfo returns it",
	"data.Kind":                 "constants",
	"data.PartState":            "a field of State",
	"data/datasets.Entry":       "a Map yields it",
	"data/datasets.Record":      "Records yields it",
	"data/image.Arithmetic":     "constants",
	"data/image.Filter":         "constants",
	"data/image.PadMode":        "constants",
	"data/service.Host":         "Listen returns it: ExampleListen",
	"data/service.HostStats":    "Host.Stats returns it",
	"data/service.HostStatus":   "a field of Stats",
	"data/service.Stats":        "Loader.Stats returns it",
	"dist.Loss":                 "RegisterLoss returns it: ExampleDataParallel",
	"dist.Op":                   "constants",
	"dist.RankError":            "an error that calls return",
	"dist.Work":                 "Group.Async returns it",
	"encoding/hdf5.Dataset":     "File.Dataset returns it: Example",
	"encoding/hdf5.File":        "Open returns it",
	"encoding/hdf5.Output":      "Writer.Dataset returns it: Example",
	"encoding/hdf5.Writer":      "Create and Append return it",
	"encoding/npy.Info":         "Archive.List returns it",
	"encoding/safetensors.File": "Open returns it",
	"encoding/safetensors.Info": "File.Info returns it",
	"ipc.Conn":                  "Dial and Accept return it",
	"ipc.Policy":                "constants: ExampleQueueOptions",
	"ipc.Sender":                "Queue.Sender returns it: ExampleQueue_Sender",
	"manager/remote.Listener":   "Listen returns it: ExampleListen",
	"nats.Conn":                 "Connect returns it",
	"nats.DeadLetter":           "DeadLetters yields it",
	"nats.Entry":                "Store.Watch yields it",
	"nats.QueueStats":           "Queue.Stats returns it",
	"nats/broker.Stats":         "Broker.Stats returns it",
	"nn.Pass":                   "a field of Recurrent",
	"nn.Recurrent":              "a part of LSTM and GRU",
	"pool.IMap":                 "ImapAsync returns it",
	"pool.Pool":                 "New returns it",
	"shm.Holder":                "a field of Report",
	"shm.Report":                "shoal.Inspect returns it",
	"shm.Stats":                 "shoal.MemoryStats returns it",
	"shm.Unread":                "a field of SpaceError",
	"torch.CUDATensor":          "Conn.Recv returns it",
	"torch.Collate":             "a field of Child",
	"torch.Conn":                "Dial returns it: ExampleListener",
	"torch.Container":           "requires a Python process, which go test may not have",
	"torch.Keywords":            "requires a Python process, which go test may not have",
	"torch.Manager":             "requires a Python process, which go test may not have",
	"torch.OpenStream":          "a field of Child",
	"torch.OpenValueStream":     "a field of Child",
	"torch.Process":             "requires a Python process, which go test may not have",
	"torch.ProcessError":        "an error that calls return",
	"torch.Proxy":               "requires a Python process, which go test may not have",
	"torch.RemoteError":         "an error that calls return",
	"torch.Store":               "DialStore returns it: ExampleServeStore",
	"torch.StoreError":          "an error that calls return",
	"torch.Strategy":            "constants: ExampleListener",
	"trace.Track":               "Trace.Track returns it: Example",
}

// withoutExamples are public packages without any example, with the reason.
var withoutExamples = map[string]string{
	"data/download":     "it fetches files from the network",
	"dist/mpi":          "imported for its side effect; its ranks require an MPI library and its launcher",
	"torch/huggingface": "imported for its side effect; its workers are started by Python",
}

// withoutOutput are packages with examples that go test compiles and does not run, with the reason.
var withoutOutput = map[string]string{
	"shoaltest": "its functions are called by TestMain and by tests",
}

// TestTypesThatUsersConstructHaveExamples reads the exported types that are no interfaces, in the
// public packages of all modules.
func TestTypesThatUsersConstructHaveExamples(t *testing.T) {
	packages := publicSources(t)
	if len(packages) < 30 {
		t.Fatalf("%d public packages", len(packages))
	}
	for dir, p := range packages {
		reason, excused := withoutExamples[dir]
		delete(withoutExamples, dir)
		if has := len(p.examples) > 0; !has && !excused {
			t.Errorf("%s has no example: write one that go test runs", dir)
			continue
		} else if has && excused {
			t.Errorf("%s has an example: take it off the list, where it says %q", dir, reason)
		}
		for name := range p.types {
			reason, excused := withoutExample[typeKey(dir, name)]
			delete(withoutExample, typeKey(dir, name))
			if has := exampleOf(p.name, name, p.examples); !has && !excused && len(p.examples) > 0 {
				t.Errorf("%s.%s has no example: write an Example%[2]s that go test runs", dir, name)
			} else if has && excused {
				t.Errorf("%s.%s has an example: take it off the list, where it says %q", dir, name, reason)
			}
		}
		for _, name := range p.silent {
			if _, excused := withoutOutput[dir]; !excused {
				t.Errorf("%s: Example%s has no // Output: so go test does not run it", dir, name)
			}
		}
	}
	for name := range withoutExample {
		t.Errorf("%s is on the list, and not there", name)
	}
	for name := range withoutExamples {
		t.Errorf("package %s is on the list, and not there", name)
	}
}

// typeKey returns the key of a type in withoutExample.
func typeKey(dir, name string) string {
	if dir == "." {
		return "." + name
	}
	return dir + "." + name
}

// exampleOf reports whether a type has an example: one of its name or of a method, or one that
// names it or its constructor.
func exampleOf(pkg, name string, examples map[string]string) bool {
	shown := regexp.MustCompile(`\b` + pkg + `\.(New|Open)?` + name + `\b`)
	for example, code := range examples {
		if example == name || strings.HasPrefix(example, name+"_") || shown.MatchString(code) {
			return true
		}
	}
	return false
}

func TestExampleOf_ReadsNamesOfThePackage(t *testing.T) {
	for _, c := range []struct {
		example, code string
		want          bool
	}{
		{"Queue", "", true},
		{"Queue_Put", "", true},
		{"NewQueue", "", false},
		{"QueueOptions", "", false},
		{"", "q := ipc.Queue[int]{}", true},
		{"", "q := ipc.NewQueue[int](1)", true},
		{"", "q := manager.NewQueue(1)", false},
		{"", "q := ipc.NewQueueWith(1)", false},
		{"", "Queue := 1", false},
	} {
		if got := exampleOf("ipc", "Queue", map[string]string{c.example: c.code}); got != c.want {
			t.Errorf("Example%s with %q: %v, want %v", c.example, c.code, got, c.want)
		}
	}
}

func TestPublicSources_LeaveOutCommentsAndLiterals(t *testing.T) {
	p := &source{types: make(map[string]bool), examples: make(map[string]string)}
	p.addText(t, "a_test.go", "package a_test\n\n// Of a.Commented.\nfunc Example() {\n\tvar x a.Used // a.Commented\n"+
		"\tfmt.Println(x, \"a.Quoted\")\n\t// Output: a.Printed\n}\n\nfunc ExampleSilent() {\n\t// More.\n\t// Output: no\n}\n")
	for name, want := range map[string]bool{"Used": true, "Commented": false, "Quoted": false, "Printed": false} {
		if exampleOf("a", name, p.examples) != want {
			t.Errorf("a.%s: %v, want %v in %q", name, !want, want, p.examples)
		}
	}
	if len(p.silent) != 1 || p.silent[0] != "Silent" {
		t.Errorf("%q, want the example that go test does not run", p.silent)
	}
}

// A source is a public package as far as this test reads it.
type source struct {
	name     string
	types    map[string]bool   // the exported types that are no interfaces
	examples map[string]string // the code, without comments, by the rest of the function's name
	silent   []string          // the examples without an output
}

// publicSources returns the public packages of all modules by directory.
func publicSources(t *testing.T) map[string]*source {
	t.Helper()
	packages := make(map[string]*source)
	err := fs.WalkDir(houseFS, ".", func(name string, d fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (hidden || d.Name() == "testdata" || !archtest.Public(name)):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, ".go"):
			p := packages[path.Dir(name)]
			if p == nil {
				p = &source{types: make(map[string]bool), examples: make(map[string]string)}
				packages[path.Dir(name)] = p
			}
			p.addText(t, name, string(read(t, houseFS, name)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, p := range packages {
		if p.name == "main" || p.name == "" {
			delete(packages, dir)
		}
	}
	return packages
}

// addText reads a file of the package.
func (p *source) addText(t *testing.T, name, text string) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, "_test.go") {
		p.name = f.Name.Name
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				addTypes(p.types, d)
			}
		}
		return
	}
	for _, e := range doc.Examples(f) {
		p.examples[e.Name] += tokens(t, set, e.Code)
		if e.Output == "" && !e.EmptyOutput {
			p.silent = append(p.silent, e.Name)
		}
	}
}

// tokens returns the code of an example without comments and literals.
func tokens(t *testing.T, set *token.FileSet, code ast.Node) string {
	t.Helper()
	var text bytes.Buffer
	if err := printer.Fprint(&text, set, code); err != nil {
		t.Fatal(err)
	}
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, text.Len()), text.Bytes(), nil, 0)
	var b strings.Builder
	for last := token.ILLEGAL; last != token.EOF; {
		_, tok, name := s.Scan()
		switch {
		case tok == token.PERIOD:
			b.WriteByte('.')
		case tok == token.IDENT && last == token.PERIOD:
			b.WriteString(name)
		case tok == token.IDENT:
			b.WriteString(" " + name)
		default:
			b.WriteByte(' ')
		}
		last = tok
	}
	return b.String()
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
