package shm_test

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/shm"
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
	for {
		c, err := sys.Dial(full, path)
		if errors.Is(err, syscall.EMFILE) {
			t.Skip("too few descriptors: ", err)
		}
		if errors.Is(err, syscall.EAGAIN) {
			break
		}
		testutil.NoError(t, err)
		defer c.Close()
	}
	time.AfterFunc(10*time.Millisecond, func() { a.cmd.Process.Signal(syscall.SIGCONT) })
	if _, err := shm.Join(testutil.Context(t), path, shm.Token{}); !errors.Is(err, shm.ErrToken) {
		t.Errorf("join: %v, want the answer, which is ErrToken", err)
	}
}
