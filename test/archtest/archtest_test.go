package archtest_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/shoal-mp/shoal/test/archtest"
)

const module = "github.com/shoal-mp/shoal"

var houseFS = os.DirFS("../..")

func TestTheHouseStands(t *testing.T) {
	problems, err := archtest.Check(module, houseFS)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// room is a package that breaks no rule: a documented one that imports what is given.
func room(name string, imports ...string) string {
	s := screen(name, "//\tNew()\n//\n// Start with [New].\n")
	for _, i := range imports {
		s += "import _ \"" + i + "\"\n"
	}
	return s + "func New() {}\n"
}

// screen is a package clause with a comment that has a first sentence and more lines.
func screen(name, lines string) string {
	return "// Package " + name + " is a room.\n//\n" + lines + "package " + name + "\n"
}

func TestEachRuleFindsItsBadTree(t *testing.T) {
	type tree map[string]string
	for name, c := range map[string]struct {
		files tree
		want  string // in the only problem; none if empty
	}{
		"good house": {tree{
			"doc.go":                 room("shoal", module+"/internal/codec", module+"/internal/sys", "syscall"),
			"internal/codec/doc.go":  room("codec", module+"/internal/arena"),
			"internal/arena/doc.go":  room("arena", "unsafe"),
			"internal/sys/doc.go":    room("sys", "golang.org/x/sys/unix", "unsafe"),
			"internal/dl/doc.go":     room("dl", "github.com/ebitengine/purego", module+"/internal/sys"),
			"internal/kernel/doc.go": room("kernel", "golang.org/x/sys/cpu"),
			"internal/kernel/a/a.go": "package a\nimport _ \"unsafe\"\n", "internal/kernel/a/doc.go": room("a"),
			"cmd/shoal/main.go":    "// Shoal runs things.\npackage main\nimport _ \"" + module + "/cmd/shoal/run\"\n",
			"cmd/shoal/run/doc.go": room("run"),
		}, ""},
		"no floor": {tree{"attic/doc.go": room("attic")}, "give it a floor"},
		"upward": {tree{"internal/arena/doc.go": room("arena", module+"/internal/codec")},
			"internal/arena (floor 1) imports internal/codec (floor 2): imports go down only"},
		"sideways": {tree{"optim/doc.go": room("optim", module+"/pool")},
			"optim (floor 6) imports pool (floor 6)"},
		"upward to the root": {tree{"internal/codec/doc.go": room("codec", module)},
			"internal/codec (floor 2) imports the root package (floor 5)"},
		"upward from the ground": {tree{"internal/sys/doc.go": room("sys", module+"/internal/arena")},
			"imports go down only"},
		"upward in a file of another system": {tree{
			"internal/arena/doc.go":       room("arena"),
			"internal/arena/x_windows.go": "package arena\nimport _ \"" + module + "/internal/codec\"\n"},
			"imports go down only"},
		"upward in a test is free": {tree{
			"internal/arena/doc.go": room("arena"),
			"internal/arena/x_test.go": "package arena_test\nimport _ \"" + module +
				"/internal/codec\"\nimport _ \"unsafe\"\n"}, ""},
		"tensor in ipc": {tree{"ipc/doc.go": room("ipc", module+"/tensor")},
			"processes and queues know only wire"},
		"tensor in the root": {tree{"doc.go": room("shoal", module+"/tensor")},
			"the root package imports tensor"},
		"tensor behind another": {tree{"pool/doc.go": room("pool", module+"/autograd"),
			"autograd/doc.go": room("autograd", module+"/tensor")}, "pool → autograd → tensor"},
		"tensor in data is free": {tree{"data/doc.go": room("data", module+"/tensor")}, ""},
		"kernel": {tree{"internal/arena/doc.go": room("arena", "golang.org/x/sys/unix")},
			"only internal/sys calls the kernel"},
		"kernel in a test": {tree{"internal/arena/doc.go": room("arena"),
			"internal/arena/a_test.go": "package arena\nimport _ \"golang.org/x/sys/unix\"\n"},
			"only internal/sys calls the kernel"},
		"kernel by number": {tree{"internal/arena/doc.go": "// Package arena is.\npackage arena\nimport " +
			"\"syscall\"\nvar _ = syscall.SYS_READ\n"}, "syscall.SYS_READ"},
		"kernel by raw call": {tree{"internal/arena/doc.go": "// Package arena is.\npackage arena\nimport " +
			"\"syscall\"\nvar _ = syscall.Syscall6\n"}, "syscall.Syscall6"},
		"signals are free": {tree{"internal/arena/doc.go": "// Package arena is.\npackage arena\nimport \"syscall\"\nvar _ = syscall.SIGKILL\n"}, ""},
		"foreign code": {tree{"cuda/doc.go": room("cuda", "github.com/ebitengine/purego")},
			"only internal/dl loads foreign code"},
		"a broker's client": {tree{"manager/doc.go": room("manager", "github.com/nats-io/nats.go")},
			"only nats speaks with a broker"},
		"a broker": {tree{"nats/a_test.go": "package nats\nimport _ \"github.com/nats-io/nats-server/v2/server\"\n"},
			"only nats/broker is a broker"},
		"nats and the broker are free": {tree{"nats/doc.go": room("nats", "github.com/nats-io/nats.go"),
			"nats/broker/doc.go": room("broker", "github.com/nats-io/nats-server/v2/server")}, ""},
		"OpenTelemetry": {tree{"ipc/doc.go": room("ipc", "go.opentelemetry.io/otel/trace")},
			"only shoalotel knows OpenTelemetry"},
		"OpenTelemetry in the command": {tree{"cmd/shoal/main.go": "// Shoal runs things.\npackage main\nimport _ \"" + module + "/shoalotel\"\n",
			"shoalotel/doc.go": room("shoalotel")}, "only shoalotel knows OpenTelemetry"},
		"shoalotel is free": {tree{"shoalotel/doc.go": room("shoalotel", "go.opentelemetry.io/otel/trace")}, ""},
		"nats behind the command": {tree{"cmd/shoal/main.go": "// Shoal runs things.\npackage main\nimport _ \"" +
			module + "/cmd/internal/bench\"\n",
			"cmd/internal/bench/doc.go": room("bench", module+"/nats"), "nats/doc.go": room("nats")},
			"cmd/shoal → cmd/internal/bench → nats"},
		"cgo": {tree{"internal/arena/doc.go": "// Package arena is.\npackage arena\nimport \"C\"\n"},
			"without a C compiler"},
		"net in the core": {tree{"internal/arena/doc.go": room("arena", "net")},
			"internal/arena/doc.go imports net: where there is a C compiler"},
		"net's packages in the root": {tree{"doc.go": room("shoal", "net/http")}, "doc.go imports net/http"},
		"users in the core": {tree{"ipc/doc.go": room("ipc", "net/url", "os/user")},
			"ipc/doc.go imports os/user"},
		"net in a test is free": {tree{"internal/arena/doc.go": room("arena"),
			"internal/arena/a_test.go": "package arena_test\nimport _ \"net\"\n"}, ""},
		"net above the core is free": {tree{"torch/doc.go": room("torch", "net", "os/user")}, ""},
		"net in the command": {tree{"cmd/shoal/main.go": "// Shoal runs things.\npackage main\n",
			"cmd/shoal/get/doc.go": room("get", "net/http")},
			"cmd/shoal/get/doc.go imports net/http"},
		"net in another command is free": {tree{"cmd/shoal-download/main.go": "// It fetches.\npackage main\nimport _ \"net/http\"\n"}, ""},
		"unsafe":                         {tree{"ipc/doc.go": room("ipc", "unsafe")}, "ipc/doc.go imports unsafe"},
		"empty name": {tree{"internal/util/doc.go": room("util")},
			"says nothing about what is inside"},
		"empty directory name": {tree{"internal/common/doc.go": room("sharing")}, "is named common"},
		"no comment": {tree{"internal/arena/doc.go": "package arena\n"},
			"arena has no package comment in doc.go"},
		"no doc.go": {tree{"internal/arena/arena.go": "package arena\n"},
			"arena has no package comment in doc.go"},
		"comment that does not name": {tree{"internal/arena/doc.go": "// It is memory.\npackage arena\n"},
			`begins "Package arena "`},
		"comment elsewhere": {tree{"internal/arena/doc.go": room("arena"),
			"internal/arena/a.go": "// Package arena is here too.\npackage arena\n"},
			"internal/arena/a.go has a package comment"},
		"command without a comment": {tree{"cmd/shoal/main.go": "package main\n"},
			"cmd/shoal has no package comment in main.go"},
		"no code":                           {tree{"ipc/doc.go": screen("ipc", "// Start with [New].\n")}, "ipc: the package comment has no code block"},
		"an internal package needs no code": {tree{"internal/arena/doc.go": screen("arena", "// It is.\n")}, ""},
		"no start": {tree{"ipc/doc.go": screen("ipc", "//\tNew()\n//\n// See [New].\n")},
			`ipc: the first code block of the package comment is not followed by a paragraph that begins "Start with"`},
		"text before the start": {tree{"ipc/doc.go": screen("ipc", "//\tNew()\n//\n// It is.\n//\n// Start with [New].\n") +
			"func New() {}\n"}, "is not followed by a paragraph"},
		"code at the end": {tree{"ipc/doc.go": screen("ipc", "//\tNew()\n")}, "is not followed by a paragraph"},
		"start without links": {tree{"ipc/doc.go": screen("ipc", "//\tNew()\n//\n// Start with New.\n")},
			`ipc: "Start with" links no function`},
		"start with nothing": {tree{"ipc/doc.go": screen("ipc", "//\tNew()\n//\n// Start with [New] and [Old].\n") +
			"func New() {}\n"}, `"Start with" links [Old], which does not exist`},
		"start with methods": {tree{"ipc/doc.go": screen("ipc", "//\tNew()\n//\n// Start with [A.B], [C.D], [E] and [F].\n") +
			"type A int\nfunc (*A) B() {}\ntype C[T any] int\nfunc (C[T]) D() {}\ntype E int\nvar F int\n"}, ""},
		"start with a method of another type": {tree{"ipc/doc.go": screen("ipc", "//\tNew()\n//\n// Start with [A.B].\n") +
			"type A int\ntype C int\nfunc (C) B() {}\n"}, "links [A.B], which does not exist"},
		"start with an import": {tree{"wire/doc.go": room("wire"), "ipc/doc.go": screen("ipc",
			"//\tNew()\n//\n// Start with [wire.New].\n") + "import \"" + module + "/wire\"\n"}, ""},
		"start with nothing of an import": {tree{"wire/doc.go": room("wire"), "ipc/doc.go": screen("ipc",
			"//\tNew()\n//\n// Start with [wire.Old].\n") + "import \"" + module + "/wire\"\n"},
			"links Old of " + module + "/wire, which does not exist"},
		"start with a definition": {tree{"doc.go": room("shoal"), "ipc/doc.go": screen("ipc",
			"//\tNew()\n//\n// Start with [shoal.New].\n//\n// [shoal.New]: https://pkg.go.dev/"+module+"#New\n")}, ""},
		"start with a definition of nothing": {tree{"doc.go": room("shoal"), "ipc/doc.go": screen("ipc",
			"//\tNew()\n//\n// Start with [shoal.New].\n//\n// [shoal.New]: https://pkg.go.dev/"+module+"#Old\n")},
			"#Old, which is not a name of this module"},
		"row 24": {tree{"ipc/doc.go": screen("ipc", strings.Repeat("//\tNew()\n", 18)+"//\n// Start with [New].\n") +
			"func New() {}\n"}, ""},
		"row 25": {tree{"ipc/doc.go": screen("ipc", strings.Repeat("//\tNew()\n", 19)+"//\n// Start with [New].\n") +
			"func New() {}\n"}, `ipc: "Start with" ends in row 25 of go doc, want at most 24`},
		"column 80": {tree{"ipc/doc.go": screen("ipc", "//\t"+strings.Repeat("n", 76)+"\n//\n// Start with [New].\n") +
			"func New() {}\n"}, ""},
		"column 81": {tree{"ipc/doc.go": screen("ipc", "//\t{\n//\t\t"+strings.Repeat("n", 73)+
			"\n//\t}\n//\n// Start with [New].\n") + "func New() {}\n"}, "go doc prints on 81 columns, want at most 80"},
		"only tests need no comment": {tree{"cmd/internal/bench/a_test.go": "package bench_test\n"}, ""},
		"a module of the workspace": {tree{
			"go.work": "use (\n\t.\n\t./attic\n)\n", "attic/go.mod": "module attic\n", "attic/doc.go": room("attic"),
		}, "give it a floor"},
		"outside of the module": {tree{
			"go.work": "use (\n\t.\n\t./cmd\n)\n", "attic/go.mod": "module attic\n", "attic/a.go": "package a\n",
			"internal/arena/testdata/a.go": "package a\n",
			"_old/a.go":                    "package a\n",
			".git/a.go":                    "package a\n", "internal/arena/doc.go": room("arena"),
			"internal/arena/gen.go": "//go:build ignore\n\npackage main\nimport \"C\"\n"}, ""},
	} {
		fsys := fstest.MapFS{}
		for path, src := range c.files {
			fsys[path] = &fstest.MapFile{Data: []byte(src)}
		}
		problems, err := archtest.Check(module, fsys)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want == "" && len(problems) > 0:
			t.Errorf("%s: %q, want no problem", name, problems)
		case c.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], c.want)):
			t.Errorf("%s: %q, want one with %q", name, problems, c.want)
		}
	}
}

func TestACircleOnTheGroundFloorIsFound(t *testing.T) {
	problems, err := archtest.Check(module, fstest.MapFS{
		"internal/a/doc.go": {Data: []byte(room("a", module+"/internal/b"))},
		"internal/b/doc.go": {Data: []byte(room("b", module+"/internal/a"))},
	})
	if err != nil || len(problems) != 2 || !strings.Contains(problems[0], "internal/a → internal/b → internal/a") {
		t.Errorf("%q, %v", problems, err)
	}
}

func TestAFileThatDoesNotParseIsAnError(t *testing.T) {
	_, err := archtest.Check(module, fstest.MapFS{"internal/arena/a.go": {Data: []byte("package\n")}})
	if err == nil || !strings.Contains(err.Error(), "internal/arena/a.go") {
		t.Errorf("%v, want an error that names the file", err)
	}
}
