//go:build amd64 || arm64

package sys_test

import (
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A nil dereference is recoverable only as long as the handler of SIGSEGV is Go's, on Go's signal
// stack.
func recovers() (ok bool) {
	defer func() { ok = recover() != nil }()
	var p *int
	*p = 1
	return false
}

func TestSignalsThatSomebodyTookComeBack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, err := sys.SaveSignals()
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.TakeSignal(syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	taken, err := s.Restore()
	if err != nil || !slices.Equal(taken, []syscall.Signal{syscall.SIGSEGV}) {
		t.Errorf("taken: %v, %v; want SIGSEGV", taken, err)
	}
	if !recovers() {
		t.Error("a nil dereference is not recovered")
	}
	if taken, err := s.Restore(); err != nil || taken != nil {
		t.Errorf("the second time: %v, %v", taken, err)
	}
}
