package arena_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// The listener's process stands still while so many connect that the kernel takes no more.
func TestJoin_WaitsWhereTooManyHaveCalled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	a := start(t, nil, "listener", path)
	a.hear()
	testutil.NoError(t, a.cmd.Process.Signal(syscall.SIGSTOP))
	full, cancel := context.WithCancel(t.Context())
	cancel()
	var calls []io.Closer
	for {
		c, err := sys.Dial(full, path)
		if errors.Is(err, syscall.EMFILE) {
			t.Skip("too few descriptors: ", err)
		}
		if errors.Is(err, syscall.EAGAIN) {
			break
		}
		testutil.NoError(t, err)
		calls = append(calls, c)
	}
	time.AfterFunc(10*time.Millisecond, func() {
		a.cmd.Process.Signal(syscall.SIGCONT)
		for _, c := range calls { // a listener with thousands of open calls answers slowly, which is not tested here
			c.Close()
		}
	})
	if _, err := arena.Join(testutil.Context(t), path, arena.Token{}); !errors.Is(err, arena.ErrToken) {
		t.Errorf("join: %v, want the answer, which is ErrToken", err)
	}
}
