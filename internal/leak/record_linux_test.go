package leak

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// openForgotten opens the descriptor that the tests look for.
func openForgotten(t *testing.T) *os.File {
	t.Helper()
	f := testutil.Value(sys.Memfd("forgotten"))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

// of returns the description of f among all descriptors of this process.
func of(t *testing.T, f *os.File) string {
	t.Helper()
	prefix := fmt.Sprintf("descriptor %d: ", f.Fd())
	for _, text := range describeDescriptors() {
		if strings.HasPrefix(text, prefix) {
			return text
		}
	}
	t.Fatalf("no descriptor %d", f.Fd())
	return ""
}

func TestRecord_DescriptorsAreDescribedWithTheirOpener(t *testing.T) {
	before := openForgotten(t)
	Record()
	t.Cleanup(forget)
	if text := of(t, before); strings.Contains(text, "\n") {
		t.Errorf("opened before Record: got %q, want no calls", text)
	}
	f := openForgotten(t)
	for _, want := range []string{"internal/leak.openForgotten\n", "record_linux_test.go:"} {
		if text := of(t, f); !strings.Contains(text, want) {
			t.Errorf("got %q, want one with %q", text, want)
		}
	}
}

// Package os does not report what it opens, and may get the number of a descriptor that package sys
// has opened.
func TestRecord_ANumberThatIsUsedAgainHasNoOpener(t *testing.T) {
	Record()
	t.Cleanup(forget)
	f := openForgotten(t)
	number := f.Fd()
	f.Close()
	again := testutil.Value(os.Open(os.DevNull))(t)
	defer again.Close()
	if again.Fd() != number {
		t.Skipf("descriptor %d was not used again, but %d", number, again.Fd())
	}
	if text := of(t, again); strings.Contains(text, "\n") {
		t.Errorf("got %q, want no calls", text)
	}
}

func TestStarted_ProcessesAreDescribedWithTheirStarter(t *testing.T) {
	Started(1)
	if text := Starter("1"); text != "" {
		t.Errorf("before Record: got %q, want no calls", text)
	}
	Record()
	t.Cleanup(forget)
	startForgotten(2)
	if text := Starter("2"); !strings.Contains(text, "leak.startForgotten\n") ||
		!strings.Contains(text, "record_linux_test.go:") {
		t.Errorf("got %q, want one with startForgotten", text)
	}
	if text := Starter("3"); text != "" {
		t.Errorf("for an unknown process: got %q, want no calls", text)
	}
}

// startForgotten does as if it had started a process.
func startForgotten(pid int) { Started(pid) }

// forget ends the record.
func forget() {
	recorded.Lock()
	defer recorded.Unlock()
	sys.OnOpen(nil)
	recorded.descriptors, recorded.processes = nil, nil
}
