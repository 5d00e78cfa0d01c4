//go:build amd64 || arm64

package dl_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/dl"
)

// greedy is a library that behaves as large ones do: it takes signals when it is loaded, without a
// signal stack.
const greedy = `
#include <signal.h>
static void handler(int sig) { (void)sig; }
__attribute__((constructor)) static void init(void) {
	struct sigaction a = {0};
	a.sa_handler = handler;
	sigaction(SIGSEGV, &a, 0);
	sigaction(SIGURG, &a, 0);
}
long add(int a, long b, const int *c) { return a + b + *c; }
`

func build(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: there is no library to load")
	}
	dir := t.TempDir()
	src, lib := filepath.Join(dir, "greedy.c"), filepath.Join(dir, "libgreedy.so")
	if err := os.WriteFile(src, []byte(greedy), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), cc, "-shared", "-fPIC", "-o", lib,
		src).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return lib
}

func recovers() (ok bool) {
	defer func() { ok = recover() != nil }()
	var p *int
	*p = 1
	return false
}

func TestLoad_CallsALibraryAndTheSignalsStayGos(t *testing.T) {
	lib, err := dl.Open("libthereisnone.so.1", build(t))
	if err != nil {
		t.Fatal(err)
	}
	add, err := lib.Symbol("add")
	if err != nil {
		t.Fatal(err)
	}
	c := int32(4)
	if got := dl.Call(add, ^uintptr(0), 1<<40, uintptr(unsafe.Pointer(&c))); got != 1<<40+3 {
		t.Errorf("-1 + 2^40 + 4 = %d", got)
	}
	if !recovers() {
		t.Error("a nil dereference is not recovered")
	}
	if _, err := lib.Symbol("subtract"); !errors.Is(err, dl.ErrNoSymbol) || !strings.Contains(err.Error(), "subtract") {
		t.Errorf("a symbol that is not there: %v", err)
	}
}

func TestLoad_NamesALibraryThatIsNotThere(t *testing.T) {
	_, err := dl.Open("libthereisnone.so.1", "libthereisnone.so.2")
	if !errors.Is(err, dl.ErrNotLoaded) || !strings.Contains(err.Error(), "none.so.1") ||
		!strings.Contains(err.Error(), "none.so.2") {
		t.Errorf("%v", err)
	}
}
