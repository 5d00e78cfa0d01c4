//go:build amd64 || arm64

package dl_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
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

func build(t *testing.T, source string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: there is no library to load")
	}
	dir := t.TempDir()
	src, lib := filepath.Join(dir, "greedy.c"), filepath.Join(dir, "libgreedy.so")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
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
	lib, err := dl.Open("libthereisnone.so.1", build(t, greedy))
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

// opener is a library that opens a device file as a driver may: it says that programs are not to
// inherit it a while later, or never.
const opener = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
static void handler(int sig) { (void)sig; }
long opens_late(void) {
	int fd = open("/dev/zero", O_RDONLY);
	usleep(300000);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}
long opens(void) { return open("/dev/zero", O_RDONLY); }
struct kernel_action { void (*f)(int); unsigned long flags; void *restorer; unsigned long mask; };
long syscall(long, ...);
long takes(int sig) {
	struct kernel_action a = {handler, 0x04000000, (void *)handler, 0};
	return syscall(NR, (long)sig, &a, 0L, 8L);
}
long has(int sig) {
	struct kernel_action a;
	syscall(NR, (long)sig, 0L, &a, 8L);
	return a.f == handler;
}
long stands_on_a_stack(int sig) {
	struct kernel_action a;
	syscall(NR, (long)sig, 0L, &a, 8L);
	return (a.flags & 0x08000000) != 0;
}
`

// calls returns functions of the library.
func calls(t *testing.T) func(name string, args ...uintptr) uintptr {
	t.Helper()
	number := map[string]string{"amd64": "13", "arm64": "134"}[runtime.GOARCH]
	lib, err := dl.Open(build(t, strings.ReplaceAll(opener, "NR", number)))
	if err != nil {
		t.Fatal(err)
	}
	return func(name string, args ...uintptr) uintptr {
		f, err := lib.Symbol(name)
		if err != nil {
			t.Fatal(err)
		}
		return dl.Call(f, args...)
	}
}

// inherits reports whether a program that is started has /dev/zero open.
func inherits(t *testing.T) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ls", "-l", "/proc/self/fd").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Contains(string(out), "/dev/zero")
}

func TestGuard_NoProgramInheritsWhatADriverOpens(t *testing.T) {
	call := calls(t)
	for _, how := range []string{"opens", "opens_late"} {
		begun, done := make(chan bool), make(chan error)
		go func() {
			done <- dl.Guard(func() error {
				close(begun)
				call(how)
				return nil
			})
		}()
		<-begun
		for ended := false; !ended; {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				ended = true
			default:
			}
			if inherits(t) {
				t.Fatalf("a program has the device that the driver %s", how)
			}
		}
	}
	file := int(call("opens")) // without a guard, so that the test can see what it looks for
	if !inherits(t) {
		t.Error("no program has a device that nobody guards")
	}
	dl.Guard(func() error { return nil })
	if !inherits(t) {
		t.Error("a guard has taken away what was open before")
	}
	syscall.Close(file)
}

// The C library's own signals are the C library's, which needs them for its threads; Go needs that
// their handlers run on its stack.
func TestGuard_LeavesTheCLibraryItsSignals(t *testing.T) {
	call := calls(t)
	for _, sig := range []uintptr{32, 33} {
		if err := dl.Guard(func() error { call("takes", sig); return nil }); err != nil {
			t.Fatal(err)
		}
		if call("has", sig) == 0 || call("stands_on_a_stack", sig) == 0 {
			t.Errorf("signal %d: its handler is there: %d, and on Go's stack: %d", sig, call("has", sig),
				call("stands_on_a_stack", sig))
		}
	}
	if err := dl.Guard(func() error { call("takes", uintptr(syscall.SIGURG)); return nil }); err != nil {
		t.Fatal(err)
	}
	if call("has", uintptr(syscall.SIGURG)) != 0 {
		t.Error("SIGURG stays with the library")
	}
}

// Of two guards at once the second sees the first one's signals, and would write them back.
func TestGuard_OneAtATime(t *testing.T) {
	call := calls(t)
	taken, over := make(chan bool), make(chan error, 2)
	go func() {
		over <- dl.Guard(func() error {
			call("takes", uintptr(syscall.SIGSEGV))
			close(taken)
			time.Sleep(20 * time.Millisecond)
			return nil
		})
	}()
	<-taken
	go func() { over <- dl.Guard(func() error { time.Sleep(50 * time.Millisecond); return nil }) }()
	for range 2 {
		if err := <-over; err != nil {
			t.Fatal(err)
		}
	}
	if call("has", uintptr(syscall.SIGSEGV)) != 0 || !recovers() {
		t.Error("SIGSEGV is the library's")
	}
}
