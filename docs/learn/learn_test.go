// Package learn_test types the programs of the lessons as their pages have them, with each change
// that a page makes to its program, and compares what they print with what the page shows.
package learn_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	module   = "github.com/shoal-mp/shoal"
	watchdog = 2 * time.Minute // far beyond what a program takes
	longest  = 100             // lines of code of a program, without comments and empty lines
)

var update = flag.Bool("learn.update", false, "write what the programs print to the pages, for an author to read")

// A step is a block of a page that runs a program and shows what it prints.
type step struct {
	page, name string
	program    string   // as the page has it, with the changes of the block before
	title      string   // what the program is called in its errors
	args       []string // of the command line
	launcher   []string // arguments of cmd/shoal, which starts the program
	shown      string
}

// TestLessonsPrintWhatTheyShow runs every program of lessons 1 to 9. Lesson 10 is of Python alone:
// python/tests/test_pages.py runs it.
func TestLessonsPrintWhatTheyShow(t *testing.T) {
	pages, err := filepath.Glob("[1-9]-*.md")
	if err != nil || len(pages) != 9 {
		t.Fatalf("%d lessons, %v", len(pages), err)
	}
	var steps []step
	for _, page := range pages {
		steps = append(steps, stepsOf(t, page)...)
	}
	if len(steps) < 2*(len(pages)-1) {
		t.Fatalf("%d programs", len(steps))
	}
	bin := build(t, steps)
	shoal := sync.OnceValue(func() string { return buildShoal(t) })
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			cmd := []string{bin}
			if s.launcher != nil {
				cmd = append(append([]string{shoal()}, s.launcher...), bin)
			}
			got := run(t, cmd, s)
			if *update {
				page := string(read(t, s.page))
				write(t, s.page, strings.Replace(page, s.shown, got, 1))
			} else if a, b := normal(s.shown), normal(got); a != b {
				t.Errorf("%s shows\n%s\nand the program prints\n%s", s.page, a, b)
			}
		})
	}
}

var (
	fences    = regexp.MustCompile("(?ms)^```(go|diff|console)\n(.*?)^```$")
	goRun     = regexp.MustCompile(`\A\$ go run \./(\S+)(.*)\n`)
	shoalRun  = regexp.MustCompile(`\A\$ go build \./(\S+)\n\$ go run \./cmd/shoal (run -n \d+) \./(\S+)\n`)
	notCode   = regexp.MustCompile(`(?m)^\s*(//.*)?\n`)
	registers = regexp.MustCompile(`((?:shoal|pool)\.Register(?:Init)?\(")`)
)

// stepsOf reads a page. A block of Go is the program, which is a file of the tree. A block of
// differences changes it for the commands up to the next block.
func stepsOf(t *testing.T, page string) (steps []step) {
	t.Helper()
	var original, program string
	for _, f := range fences.FindAllStringSubmatch(string(read(t, page)), -1) {
		kind, text := f[1], f[2]
		m, launcher := goRun.FindStringSubmatch(text), []string(nil)
		if l := shoalRun.FindStringSubmatch(text); l != nil && filepath.Base(l[1]) == l[3] {
			m, launcher = []string{l[0], l[1], ""}, strings.Fields(l[2])
		}
		switch {
		case kind == "go":
			original, program = text, text
			if n := strings.Count(notCode.ReplaceAllString(text, ""), "\n"); n > longest {
				t.Errorf("%s: the program has %d lines", page, n)
			}
		case kind == "diff":
			program = change(t, page, original, text)
		case m != nil:
			if file := string(read(t, filepath.Join("../..", m[1], "main.go"))); file != original {
				t.Errorf("%s shows another program than %s/main.go has", page, m[1])
			}
			steps = append(steps, step{page: page, name: fmt.Sprintf("lesson%cstep%d", page[0], len(steps)+1),
				program: program, title: filepath.Base(m[1]), args: strings.Fields(m[2]), launcher: launcher,
				shown: strings.TrimPrefix(text, m[0])})
		}
	}
	return steps
}

// change applies a block of differences, whose parts have an empty line between them.
func change(t *testing.T, page, program, diff string) string {
	t.Helper()
	for part := range strings.SplitSeq(strings.TrimSuffix(diff, "\n"), "\n\n") {
		var before, after strings.Builder
		for line := range strings.SplitSeq(part, "\n") {
			if line[0] != '+' {
				fmt.Fprintln(&before, line[1:])
			}
			if line[0] != '-' {
				fmt.Fprintln(&after, line[1:])
			}
		}
		if strings.Count(program, before.String()) != 1 {
			t.Fatalf("%s: the program does not have these lines once:\n%s", page, before.String())
		}
		program = strings.Replace(program, before.String(), after.String(), 1)
	}
	return program
}

// build makes one program of all, since linking is what takes time: each is a package of its own,
// whose functions are registered under names of its own. The files are those of an overlay, so that
// the tree stays as it is.
func build(t *testing.T, steps []step) (bin string) {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	overlay := map[string]string{}
	add := func(name, text string) {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".go")
		write(t, file, text)
		overlay[filepath.Join(root, "typed", name, "main.go")] = file
	}
	var imports, cases strings.Builder
	for _, s := range steps {
		text := strings.Replace(s.program, "\npackage main\n", "\npackage "+s.name+"\n", 1)
		text = strings.Replace(text, "\nfunc main() {", "\nfunc Main() {", 1)
		add(s.name, registers.ReplaceAllString(text, "${1}"+s.name+"."))
		fmt.Fprintf(&imports, "\t%q\n", module+"/docs/learn/typed/"+s.name)
		fmt.Fprintf(&cases, "\tcase %q:\n\t\t%s.Main()\n", s.name, s.name)
	}
	add("fromtorch", snippets(t, "../coming-from-torch.md"))
	fmt.Fprintf(&imports, "\t_ %q\n", module+"/docs/learn/typed/fromtorch")
	add("", "package main\n\nimport (\n\t\"os\"\n"+imports.String()+
		")\n\nfunc main() {\n\tswitch os.Getenv(\"LESSON\") {\n"+cases.String()+"\t}\n}\n")
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), string(list))
	bin = filepath.Join(dir, "lessons")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin,
		"-overlay", filepath.Join(dir, "overlay.json"), "./typed").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// buildShoal makes the command, which starts the ranks of a lesson.
func buildShoal(t *testing.T) (bin string) {
	bin = filepath.Join(t.TempDir(), "shoal")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../../cmd/shoal").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// packages are those that a page may use without an import.
var packages = []string{"context", "errors", "fmt", "time", module + "/autograd", module + "/cuda", module + "/data",
	module + "/dist", module + "/ipc", module + "/manager", module + "/nn", module + "/pool", module + "/shm",
	module + "/tensor", module}

// snippets returns a file of all Go code of a page, in one package, so that it is compiled.
func snippets(t *testing.T, page string) string {
	t.Helper()
	var code, head strings.Builder
	for _, f := range fences.FindAllStringSubmatch(string(read(t, page)), -1) {
		if f[1] == "go" {
			code.WriteString("\n" + f[2])
		}
	}
	if code.Len() < 2000 {
		t.Fatalf("%s has %d bytes of Go", page, code.Len())
	}
	for _, path := range packages {
		if regexp.MustCompile(`\b` + filepath.Base(path) + `\.[A-Z]`).MatchString(code.String()) {
			fmt.Fprintf(&head, "\t%q\n", path)
		}
	}
	return "package fromtorch\n\nimport (\n" + head.String() + ")\n" + code.String()
}

// run returns what go run would print.
func run(t *testing.T, command []string, s step) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], append(command[1:], s.args...)...)
	cmd.Env = append(os.Environ(), "LESSON="+s.name)
	if s.launcher == nil {
		cmd.Args[0] = s.title
	}
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("it has not ended: %s", out)
	case errors.As(err, &exit):
		out = fmt.Appendf(out, "exit status %d\n", exit.ExitCode())
	case err != nil:
		t.Fatal(err)
	}
	out = leftOut.ReplaceAll(out, nil)
	return string(bytes.ReplaceAll(out, []byte(s.name+"."), nil))
}

var (
	// Warnings about the machine, what a launcher was, and the stacks of workers.
	leftOut = regexp.MustCompile(`(?m)^((\[\d+\] )?\S+ \S+ (WARN|INFO) .*|    stack:|\t.*)\n`)
	varying = []struct{ what, is string }{
		{`(?m)^\w+: shoal: `, "shoal: "},             // one of several workers is the first
		{`\brank \d+ \(pid \d+\)`, "rank N (pid N)"}, // of an error; the same may befall several
		{`\bpid \d+`, "pid N"},
		{`\bparticipant \d+`, "participant N"},
		{`\bprocess \d+`, "process N"},
		{`\b\d+(\.\d+)?(µs|ms|s)\b`, "T"},
		{`0x[0-9a-f]+`, "0xN"},
	}
)

// normal returns the lines in order, with the numbers that differ from run to run left out. Where
// several workers fail alike, the first to fail ends the others: how many say so differs as well.
func normal(text string) string {
	for _, v := range varying {
		text = regexp.MustCompile(v.what).ReplaceAllString(text, v.is)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	lines = slices.CompactFunc(lines, func(a, b string) bool { return a == b && strings.HasPrefix(a, "shoal: ") })
	return strings.Join(lines, "\n")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLessonOfPyTorchPrintsWhatItShows runs the script of lesson 8 with the Go program as it says.
func TestLessonOfPyTorchPrintsWhatItShows(t *testing.T) {
	page := string(read(t, "8-pytorch.md"))
	for _, file := range []string{"main.go", "train.py"} {
		if !strings.Contains(page, "\n"+string(read(t, "../../examples/torchloader/"+file))+"```\n") {
			t.Errorf("lesson 8 shows another %s than examples/torchloader has", file)
		}
	}
	python := cmp.Or(filepath.SplitList(os.Getenv("SHOAL_TORCH_PYTHONS"))...)
	python = cmp.Or(python, "python3")
	if exec.Command(python, "-c", "import torch, numpy; torch.nn").Run() != nil {
		t.Skip("no PyTorch: python3 has none, and SHOAL_TORCH_PYTHONS names none (make interop installs one)")
	}
	_, block, found := strings.Cut(page, "```console\n")
	block, shown, ended := strings.Cut(block, "./loader\n")
	shown, _, closed := strings.Cut(shown, "```\n")
	if !found || !ended || !closed {
		t.Fatal("lesson 8 does not show what the script prints")
	}
	block = strings.ReplaceAll(block+"./loader\n", "$ ", "")
	block = strings.ReplaceAll(block, "-o loader", "-o "+filepath.Join(t.TempDir(), "loader"))
	loader := regexp.MustCompile(`-o (\S+)`).FindStringSubmatch(block)[1]
	block = strings.NewReplacer("train.py ./loader", "train.py "+loader, "python3 ", python+" ").Replace(block)
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", block)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	figure := regexp.MustCompile(`0\.[78]\d\d`)
	if err != nil || figure.ReplaceAllString(string(out), "F") != figure.ReplaceAllString(shown, "F") {
		t.Errorf("%v\n%s%s\nwhere the page shows\n%s", err, out, &stderr, shown)
	}
}
