package sys_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
	"golang.org/x/sys/unix"
)

const mib = 1 << 20

// memfile returns a memory file of the given size that is closed when the test ends.
func memfile(t *testing.T, size int64) *os.File {
	t.Helper()
	f := testutil.Value(sys.Memfd("systest"))(t)
	t.Cleanup(func() { f.Close() })
	testutil.NoError(t, sys.Resize(f, size))
	return f
}

func mapped(t *testing.T, f *os.File, size int) []byte {
	t.Helper()
	mem := testutil.Value(sys.Map(f, size))(t)
	t.Cleanup(func() { testutil.NoError(t, sys.Unmap(mem)) })
	return mem
}

func allocated(t *testing.T, f *os.File, want int64) {
	t.Helper()
	if got := testutil.Value(sys.Allocated(f))(t); got != want {
		t.Errorf("%d bytes are backed, want %d", got, want)
	}
}

func TestSealedFileKeepsItsSize(t *testing.T) {
	f := memfile(t, mib)
	testutil.NoError(t, sys.Resize(f, 2*mib)) // not sealed yet
	testutil.NoError(t, sys.Seal(f))
	for _, size := range []int64{0, mib, 3 * mib} {
		if err := sys.Resize(f, size); !errors.Is(err, unix.EPERM) {
			t.Errorf("resize to %d: %v, want EPERM", size, err)
		}
	}
	if err := sys.Seal(f); !errors.Is(err, unix.EPERM) {
		t.Errorf("second seal: %v, want EPERM: the seals themselves must be sealed", err)
	}
}

func TestTwoMappingsShareTheirBytes(t *testing.T) {
	f := memfile(t, mib)
	a, b := mapped(t, f, mib), mapped(t, f, mib)
	copy(a[4096:], "across")
	if got := b[4096:4102]; string(got) != "across" {
		t.Errorf("the other mapping reads %q", got)
	}
}

func TestMapIsLeftOutOfCoreDumps(t *testing.T) {
	mapped(t, memfile(t, mib), mib)
	smaps := testutil.Value(os.ReadFile("/proc/self/smaps"))(t)
	_, rest, ok := bytes.Cut(smaps, []byte("/memfd:systest"))
	_, rest, flags := bytes.Cut(rest, []byte("VmFlags:"))
	if !ok || !flags {
		t.Fatal("the mapping is not in /proc/self/smaps")
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	if !bytes.Contains(line, []byte(" dd")) {
		t.Errorf("flags of the mapping: %s, want dd among them", line)
	}
}

func TestCommitBacksExactlyItsRangeAndPunchGivesItBack(t *testing.T) {
	f := memfile(t, 64*mib)
	allocated(t, f, 0)
	testutil.NoError(t, sys.Commit(f, 8*mib, 9*mib)) // three pieces, the last one short
	allocated(t, f, 9*mib)
	mem := mapped(t, f, 64*mib)
	mem[8*mib] = 1
	mem[17*mib-1] = 1
	allocated(t, f, 9*mib) // writing needed no further page
	testutil.NoError(t, sys.Punch(f, 8*mib, 8*mib))
	allocated(t, f, mib)
	if mem[8*mib] != 0 || mem[17*mib-1] != 1 {
		t.Error("the punched bytes must read zero and the others stay")
	}
	testutil.NoError(t, sys.Punch(f, 0, 64*mib))
	allocated(t, f, 0)
}

func TestCommitOfNothingIsNoError(t *testing.T) {
	f := memfile(t, mib)
	testutil.NoError(t, sys.Commit(f, 0, 0))
	testutil.NoError(t, sys.Punch(f, 0, 0))
	allocated(t, f, 0)
}

func TestFailedCommitIsUndoneByPunch(t *testing.T) {
	f := memfile(t, 6*mib)
	testutil.NoError(t, sys.Seal(f))
	err := sys.Commit(f, 0, 12*mib) // the seal refuses the second piece, beyond the end
	if !errors.Is(err, unix.EPERM) {
		t.Fatalf("commit beyond a sealed end: %v, want EPERM", err)
	}
	allocated(t, f, 4*mib)
	testutil.NoError(t, sys.Punch(f, 0, 12*mib))
	allocated(t, f, 0)
}

func TestProtectNoneMakesAccessAFault(t *testing.T) {
	mem := mapped(t, memfile(t, mib), mib)
	mem[4096] = 7
	testutil.NoError(t, sys.ProtectNone(mem[4096:8192]))
	if !faults(func() { mem[4096]++ }) {
		t.Error("a protected page was written")
	}
	if faults(func() { mem[0]++ }) {
		t.Error("the page before it faults too")
	}
	testutil.NoError(t, sys.ProtectReadWrite(mem[4096:8192]))
	if faults(func() { mem[4096]++ }) || mem[4096] != 8 {
		t.Error("the page did not come back as it was")
	}
}

func faults(do func()) (faulted bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { faulted = recover() != nil }()
	do()
	return
}

func TestMapBeyondTheFileIsRefusedWithItsSize(t *testing.T) {
	if _, err := sys.Map(memfile(t, mib), 0); !errors.Is(err, unix.EINVAL) ||
		!strings.Contains(err.Error(), "map 0 bytes of systest") {
		t.Errorf("map of nothing: %v", err)
	}
}

func TestClosedFileIsAnErrorEverywhere(t *testing.T) {
	f := memfile(t, mib)
	f.Close()
	for name, call := range map[string]func() error{
		"Resize":     func() error { return sys.Resize(f, 1) },
		"Seal":       func() error { return sys.Seal(f) },
		"Map":        func() error { _, err := sys.Map(f, 4096); return err },
		"Commit":     func() error { return sys.Commit(f, 0, 1) },
		"Punch":      func() error { return sys.Punch(f, 0, 1) },
		"Allocated":  func() error { _, err := sys.Allocated(f); return err },
		"Reopen":     func() error { _, err := sys.Reopen(f); return err },
		"LockByte":   func() error { _, err := sys.LockByte(f, 0); return err },
		"ByteLocked": func() error { _, err := sys.ByteLocked(f, 0); return err },
	} {
		if err := call(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v, want os.ErrClosed", name, err)
		}
	}
}

func init() {
	roles["list memory files"] = func() error {
		files, err := filepath.Glob("/proc/self/fd/*")
		for _, name := range files {
			if to, _ := os.Readlink(name); strings.Contains(to, "memfd:") {
				fmt.Println(to)
			}
		}
		return err
	}
}

func TestMemoryFilesDoNotLeakIntoOtherPrograms(t *testing.T) {
	f := memfile(t, mib)
	again := testutil.Value(sys.Reopen(f))(t)
	defer again.Close()
	if out := finish(t, command("list memory files")); out != "" {
		t.Errorf("a started program holds %s", out)
	}
	cmd := command("list memory files")
	cmd.ExtraFiles = []*os.File{f}
	if out := finish(t, cmd); !strings.Contains(out, "memfd:systest") {
		t.Errorf("a file passed on purpose did not arrive: %q", out)
	}
}

func TestMissingCallErrorSaysWhatToDo(t *testing.T) {
	var err error = fmt.Errorf("create: %w", &sys.MissingCallError{Call: "memfd_create", Err: unix.ENOSYS})
	if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, unix.ENOSYS) {
		t.Errorf("%v is neither unsupported nor its cause", err)
	}
	for _, word := range []string{"memfd_create", "Linux 5.10"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not name %s", err, word)
		}
	}
}

// Large memory is in a mapping that may have huge pages, and is zeros like any other.
func TestHeapBytes(t *testing.T) {
	for _, n := range []int{0, 1, 4096, 8*mib + 3} {
		b := sys.HeapBytes(n)
		if len(b) != n || bytes.Count(b, []byte{0}) != n {
			t.Errorf("%d bytes, %d of them zeros, not %d", len(b), bytes.Count(b, []byte{0}), n)
		}
		if n > mib && !advised(t, &b[n/2]) {
			t.Errorf("%d bytes were not asked for in huge pages", n)
		}
	}
}

// advised reports whether an address is in a mapping of which the kernel knows that huge pages are
// wanted.
func advised(t *testing.T, at *byte) bool {
	t.Helper()
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("this kernel has no huge pages")
	}
	maps := testutil.Value(os.ReadFile("/proc/self/smaps"))(t)
	inside := false
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			here := uintptr(unsafe.Pointer(at))
			inside = from <= here && here < to
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			return strings.Contains(flags, " hg")
		}
	}
	return false
}

// Memory that is made ready holds what it held, however it lies in its pages.
func TestReady(t *testing.T) {
	for _, n := range []int{0, 1, 256 << 10, 1<<20 + 5} {
		b := sys.UnclearedBytes(n + 3)[3:]
		for i := range b {
			b[i] = byte(i)
		}
		sys.Ready(b)
		fresh := sys.UnclearedBytes(n)
		sys.Ready(fresh)
		copy(fresh, b)
		if !bytes.Equal(fresh, b) || n > 1 && b[1] != 1 {
			t.Errorf("%d bytes have changed", n)
		}
	}
}
