package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/pickle"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestMain(m *testing.M) {
	if address := os.Getenv("SHOAL_TEST_PEER"); address != "" {
		if err := runPeer(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// shared is the library that all tests use. The first one builds it.
var shared struct {
	once sync.Once
	dir  string
	err  error
}

// library returns the folder with libshoal.so. It skips the test if there is no C compiler.
func library(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("this test needs gcc, to build the C library and a program that uses it: install gcc")
	}
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "libshoal"); shared.err == nil {
			shared.err = buildLibrary(shared.dir)
		}
	})
	testutil.NoError(t, shared.err)
	return shared.dir
}

func buildLibrary(dir string, flags ...string) error {
	args := append([]string{"build", "-buildmode=c-shared", "-o", filepath.Join(dir, "libshoal.so")}, flags...)
	c := exec.Command("go", append(args, ".")...)
	c.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build libshoal.so: %w\n%s", err, out)
	}
	return nil
}

// compile compiles a C program against the library in dir and returns its path.
func compile(t testing.TB, dir, source string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	args := append([]string{"-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-I.", "-o", program, source,
		"-DLIBRARY=\"" + filepath.Join(dir, "libshoal.so") + "\""}, flags...)
	out, err := exec.CommandContext(t.Context(), "gcc", append(args, "-lpthread", "-ldl")...).CombinedOutput()
	if err != nil {
		t.Fatalf("gcc %v: %v\n%s", args, err, out)
	}
	return program
}

// linked returns the flags that link a program with the library in dir.
func linked(dir string) []string { return []string{"-L" + dir, "-lshoal", "-Wl,-rpath," + dir} }

// runProgram runs a program and returns its output.
func runProgram(t testing.TB, program string, args ...string) string {
	t.Helper()
	ctx := testutil.ContextWithTimeout(t, 2*time.Minute)
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(program), args, err, out)
	}
	return string(out)
}

// TestLibrary_C runs the C programs in testdata, which test every function of shoal.h.
func TestLibrary_C(t *testing.T) {
	for _, name := range []string{"calls", "peers", "fork", "urgent"} {
		t.Run(name, func(t *testing.T) {
			dir := library(t)
			runProgram(t, compile(t, dir, "testdata/"+name+".c", linked(dir)...))
		})
	}
	t.Run("signals", func(t *testing.T) { // loads the library later
		runProgram(t, compile(t, library(t), "testdata/signals.c"))
	})
}

// TestStorm kills C processes at random while they work. The program keeps a ledger.
func TestStorm(t *testing.T) {
	kills := "100"
	if testing.Short() {
		kills = "10"
	}
	dir := library(t)
	t.Log(runProgram(t, compile(t, dir, "testdata/storm.c", linked(dir)...), kills))
}

// BenchmarkRound measures messages within and between C processes, beside a bare eventfd.
func BenchmarkRound(b *testing.B) {
	dir := library(b)
	program := compile(b, dir, "testdata/speed.c", linked(dir)...)
	for b.Loop() {
		for line := range strings.Lines(runProgram(b, program)) {
			f := strings.Fields(line)
			n, err := strconv.ParseFloat(f[1], 64)
			testutil.NoError(b, err)
			b.ReportMetric(n, "ns/"+f[0])
		}
	}
}

// TestHeader_OtherCompilers compiles the header alone, as C99 and, if there is a compiler, as C++.
func TestHeader_OtherCompilers(t *testing.T) {
	library(t)
	for _, c := range [][]string{
		{"gcc", "-std=c99", "-x", "c"}, {"gcc", "-std=c11", "-x", "c"}, {"g++", "-std=c++11", "-x", "c++"},
		{"clang", "-std=c11", "-x", "c"},
	} {
		if _, err := exec.LookPath(c[0]); err != nil {
			continue
		}
		args := append(c[1:], "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-include", "shoal.h",
			"/dev/null")
		if out, err := exec.CommandContext(t.Context(), c[0], args...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", c, err, out)
		}
	}
}

// TestHeader_EveryFunctionIsExported compares the header with the symbols of the library, and
// checks that the C tests call every function.
func TestHeader_EveryFunctionIsExported(t *testing.T) {
	dir := library(t)
	header := testutil.Value(os.ReadFile("shoal.h"))(t)
	var tests strings.Builder
	for _, name := range testutil.Value(filepath.Glob("testdata/*.c"))(t) {
		tests.Write(testutil.Value(os.ReadFile(name))(t))
	}
	symbols := string(testutil.Value(exec.CommandContext(t.Context(), "nm", "-D", "--defined-only",
		filepath.Join(dir, "libshoal.so")).Output())(t))
	functions := regexp.MustCompile(`(?m)^SHOAL_API .*?(shoal_\w+)\(`).FindAllSubmatch(header, -1)
	if len(functions) < 80 {
		t.Fatalf("the header has %d functions, want at least 80", len(functions))
	}
	for _, m := range functions {
		f := string(m[1])
		if !regexp.MustCompile(`(?m) T ` + f + `$`).MatchString(symbols) {
			t.Errorf("%s is in shoal.h, and libshoal.so does not export it", f)
		}
		if !regexp.MustCompile(`\b` + f + `\b`).MatchString(tests.String()) {
			t.Errorf("no C test calls %s", f)
		}
	}
}

// TestExample runs the example, whose processes are C programs.
func TestExample(t *testing.T) {
	dir := library(t)
	out := runProgram(t, compile(t, dir, "example/pipeline.c", linked(dir)...))
	for _, want := range []string{"sum of batch 9: 36864", "weights of version 3", "was killed", "all batches arrived"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
}

// runPeer is the Go side of TestGo: it joins the domain of a C program, and echoes messages.
func runPeer(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := ipc.Dial[int](ctx, address, []byte("a secret of the test\x00"))
	if err != nil {
		return err
	}
	defer c.Close()
	in, err := ipc.Lookup[*ipc.Queue[pickle.Value]]("to go")
	if err != nil {
		return err
	}
	out, err := ipc.Lookup[*ipc.Queue[pickle.Value]]("from go")
	if err != nil {
		return err
	}
	weights, err := ipc.Lookup[*ipc.Latest[pickle.Value]]("weights")
	if err != nil {
		return err
	}
	for {
		v, err := in.Get(ctx)
		if errors.Is(err, ipc.ErrClosed) {
			break
		}
		if err != nil {
			return err
		}
		x := tensor.Data[float32](v.Tensors[0])
		for i := range x {
			x[i] *= 2
		}
		if err := out.Put(ctx,
			pickle.Value{Pickle: append([]byte("go: "), v.Pickle...), Tensors: v.Tensors}); err != nil {
			return err
		}
		v.Close()
	}
	_, err = weights.Store(ctx, pickle.Value{Pickle: []byte("stored by Go")})
	return err
}

// TestGo has a C program and a Go program in one domain.
func TestGo(t *testing.T) {
	dir := library(t)
	out := runProgram(t, compile(t, dir, "testdata/gopeer.c", linked(dir)...), testutil.Value(os.Executable())(t))
	if !strings.Contains(out, "ok") {
		t.Errorf("got %q, want ok", out)
	}
}

// TestOtherVersion has a program with a library of another version join, and import.
func TestOtherVersion(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a second library")
	}
	dir := library(t)
	other := t.TempDir()
	testutil.NoError(t, buildLibrary(other, "-overlay", overlay(t)))
	program := compile(t, dir, "testdata/version.c", linked(dir)...)
	c := exec.CommandContext(testutil.Context(t), program, filepath.Join(other, "libshoal.so"))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// overlay returns an overlay file of go build, with a newer version of the domain's layout.
func overlay(t *testing.T) string {
	t.Helper()
	file := testutil.Value(filepath.Abs("../internal/arena/layout/layout.go"))(t)
	number := regexp.MustCompile(`(ProtocolVersion = )(\d+)`)
	b := testutil.Value(os.ReadFile(file))(t)
	m := number.FindSubmatch(b)
	if m == nil {
		t.Fatalf("%s has no version", file)
	}
	n := testutil.Value(strconv.Atoi(string(m[2])))(t)
	scratch := t.TempDir()
	changed := filepath.Join(scratch, "layout.go")
	testutil.NoError(t, os.WriteFile(changed, number.ReplaceAll(b, fmt.Appendf(nil, "${1}%d", n+1)), 0o666))
	list := testutil.Value(json.Marshal(map[string]map[string]string{"Replace": {file: changed}}))(t)
	path := filepath.Join(scratch, "overlay.json")
	testutil.NoError(t, os.WriteFile(path, list, 0o666))
	return path
}

// TestProgram runs the package as a program, with and without cgo: it says what it is.
func TestProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "libshoal")
	c := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "buildmode=c-shared") {
		t.Errorf("got %v, %q", err, out)
	}
}
