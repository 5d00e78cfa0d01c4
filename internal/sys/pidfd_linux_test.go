package sys_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
	"golang.org/x/sys/unix"
)

func init() {
	roles["stand"] = func() error { readyAndWait(); return nil }
}

// standing starts a child that does nothing, and opens it.
func standing(t *testing.T) (child, *sys.Pidfd) {
	t.Helper()
	c := start(t, command("stand"))
	p := testutil.Value(sys.OpenPidfd(c.Process.Pid))(t)
	t.Cleanup(func() { p.Close() })
	return c, p
}

func exited(t *testing.T, p *sys.Pidfd, want bool) {
	t.Helper()
	if got := testutil.Value(p.Exited())(t); got != want {
		t.Errorf("exited: %v, want %v", got, want)
	}
}

func TestPidfdSeesAKill(t *testing.T) {
	c, p := standing(t)
	exited(t, p, false)
	var all sync.WaitGroup
	for range 3 { // waiters do not hinder each other
		all.Go(func() {
			if err := p.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	testutil.NoError(t, p.Signal(syscall.SIGKILL))
	within(t, "all three waiters", all.Wait)
	exited(t, p, true)
	testutil.NoError(t, p.Wait(t.Context())) // and again, afterwards
	c.Wait()
	exited(t, p, true)
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal to a reaped process: %v, want os.ErrProcessDone", err)
	}
}

func TestPidfdWaitEndsWhenItsContextDoes(t *testing.T) {
	_, p := standing(t)
	tired := errors.New("tired")
	ctx, cancel := context.WithCancelCause(t.Context())
	waited := make(chan error)
	go func() { waited <- p.Wait(ctx) }()
	cancel(tired)
	within(t, "the cancelled wait", func() {
		if err := <-waited; !errors.Is(err, tired) {
			t.Errorf("cancelled wait: %v, want its cause", err)
		}
	})
	exited(t, p, false)
}

func TestPidfdWaitEndsWhenClosed(t *testing.T) {
	_, p := standing(t)
	waited := make(chan error)
	go func() { waited <- p.Wait(context.Background()) }()
	testutil.NoError(t, p.Close())
	within(t, "the wait on a closed handle", func() {
		if err := <-waited; !errors.Is(err, os.ErrClosed) {
			t.Errorf("wait on a closed handle: %v, want os.ErrClosed", err)
		}
	})
	if _, err := p.Exited(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("query of a closed handle: %v, want os.ErrClosed", err)
	}
}

func TestOpenPidfdOfNobody(t *testing.T) {
	c := command("stand")
	testutil.NoError(t, c.Start())
	c.Wait()
	if _, err := sys.OpenPidfd(c.Process.Pid); !errors.Is(err, unix.ESRCH) {
		t.Errorf("open of a reaped process: %v, want ESRCH", err)
	}
}

func TestStartTimeNamesOneProcess(t *testing.T) {
	c, _ := standing(t)
	mine := testutil.Value(sys.StartTime(os.Getpid()))(t)
	if again := testutil.Value(sys.StartTime(os.Getpid()))(t); again != mine {
		t.Errorf("own start time moved from %d to %d", mine, again)
	}
	if theirs := testutil.Value(sys.StartTime(c.Process.Pid))(t); theirs < mine {
		t.Errorf("a child started at %d, before its parent at %d", theirs, mine)
	}
	c.Process.Kill()
	c.Wait()
	if _, err := sys.StartTime(c.Process.Pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("start time of a reaped process: %v", err)
	}
}
