package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/test/testutil"
)

// deaf ignores its cancellation, and SIGTERM too if it is told to.
var deaf = shoal.Register("deaf", func(_ context.Context, _ int, all bool) error {
	if all {
		signal.Ignore(syscall.SIGTERM)
	}
	fmt.Println("deaf")
	select {}
})

// firstLine is a writer that says when something was written.
type firstLine chan struct{}

func (f firstLine) Write(p []byte) (int, error) {
	select {
	case f <- struct{}{}:
	default:
	}
	return len(p), nil
}

func TestGroup_FirstFailureCancelsTheOthers(t *testing.T) {
	t.Parallel()
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Grace: watchdog})
	waiting := obey.Go(g, false)
	fails.Go(g, "error")
	err := g.Wait()
	if pe, ok := err.(*shoal.ProcessError); !ok || pe.Func != "fails" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want the one failure", err)
	}
	if err := waiting.Wait(testutil.Context(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("the other one ended with %v", err)
	}
}

var failsAtTheEnd = shoal.Register("failsAtTheEnd", func(ctx context.Context, rank int, _ struct{}) error {
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), fs.ErrNotExist) {
		return fmt.Errorf("the cause of the cancellation is %v", context.Cause(ctx))
	}
	return fmt.Errorf("also %d", rank)
})

func TestGroup_JoinsAllFailures(t *testing.T) {
	t.Parallel()
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Grace: watchdog})
	failsAtTheEnd.Go(g, struct{}{})
	failsAtTheEnd.Go(g, struct{}{})
	fails.Go(g, "error")
	err := g.Wait()
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "fails rank 0") ||
		!strings.Contains(err.Error(), "also 0") || !strings.Contains(err.Error(), "also 1") {
		t.Errorf("got %v", err)
	}
}

var loses = shoal.Register("loses", func(ctx context.Context, _ int, how string) error {
	switch how {
	case "queue":
		return fmt.Errorf("put: %w", ipc.ErrClosed)
	case "barrier":
		return fmt.Errorf("meet: %w", ipc.ErrBroken)
	case "peer":
		return fmt.Errorf("lock: %w", &shm.PeerError{PID: 1, Cause: errors.New("its lock is free")})
	}
	<-ctx.Done()
	return errors.New("the cause")
})

// A process that has lost another one may be quicker to say so than that one to say why.
func TestGroup_ACauseComesBeforeWhatFollowsFromIt(t *testing.T) {
	for _, how := range []string{"queue", "barrier", "peer"} {
		everyStart(t, func(t *testing.T, opts shoal.Options) {
			g := shoal.NewGroup(testutil.Context(t), opts)
			cause := loses.Go(g, "")
			loses.Go(g, how)
			err := g.Wait()
			if first, ok := errors.AsType[*shoal.ProcessError](err); !ok || first.Rank != cause.Rank() ||
				!strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: got %v, want both failures, the cause first", how, err)
			}
		})
	}
}

var killedAtTheEnd = shoal.Register("killedAtTheEnd", func(ctx context.Context, _ int, _ struct{}) error {
	<-ctx.Done()
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		p.Kill()
	}
	select {}
})

// One that noticed a death may have ended before the system says so of the dead.
func TestGroup_AKilledProcessComesBeforeThoseThatFailOfIt(t *testing.T) {
	t.Parallel()
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Grace: watchdog})
	killedAtTheEnd.Go(g, struct{}{})
	failsAtTheEnd.Go(g, struct{}{})
	fails.Go(g, "error") // the first that is heard of
	err := g.Wait()
	if died, ok := errors.AsType[*shoal.ProcessError](err); !ok || died.Signal != syscall.SIGKILL ||
		died.Func != "killedAtTheEnd" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}

	said := make(firstLine, 1)
	g = shoal.NewGroup(testutil.Context(t), shoal.Options{Stdout: said, Grace: 10 * time.Millisecond})
	deaf.Go(g, true) // which its group kills
	<-said
	fails.Go(g, "error")
	if pe, ok := errors.AsType[*shoal.ProcessError](g.Wait()); !ok || pe.Func != "fails" {
		t.Errorf("what a group kills is no cause: %v", pe)
	}
}

func TestGroup_ThatIsCancelledSaysWhy(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(testutil.Context(t))
	said := make(firstLine, 1)
	g := shoal.NewGroup(ctx, shoal.Options{Stdout: said, Grace: watchdog})
	obey.Go(g, true)
	<-said
	cancel(why)
	if err := g.Wait(); err != why {
		t.Errorf("got %v, want the cause alone", err)
	}
	if p := obey.Go(g, true); p.PID() != 0 || !errors.Is(p.Wait(testutil.Context(t)), shoal.ErrClosed) {
		t.Errorf("a closed group starts a process")
	}
}

func TestGroup_CloseEndsWorkersThatDoNotListen(t *testing.T) {
	t.Parallel()
	for all, want := range map[bool]syscall.Signal{false: syscall.SIGTERM, true: syscall.SIGKILL} {
		said := make(firstLine, 1)
		grace := 10 * time.Millisecond
		if !all {
			grace = 2 * time.Second // in which it dies of SIGTERM on a busy machine as well
		}
		g := shoal.NewGroup(testutil.Context(t), shoal.Options{Stdout: said, Grace: grace})
		p := deaf.Go(g, all)
		<-said
		pe, _ := errors.AsType[*shoal.ProcessError](g.Close())
		if pe == nil || pe.Signal != want || pe.OOM || !strings.Contains(pe.Error(), "did not stop") {
			t.Errorf("ignoring SIGTERM %v: got %v", all, pe)
		}
		if alive(p.PID()) {
			t.Errorf("%d is alive after Close", p.PID())
		}
		if err := g.Close(); !errors.Is(err, shoal.ErrExited) {
			t.Errorf("the second Close returns %v", err)
		}
	}
}

func TestGroup_RanksCountPerFunction(t *testing.T) {
	t.Parallel()
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{})
	a, b, c := nothing.Go(g, struct{}{}), obey.Go(g, false), nothing.Go(g, struct{}{})
	if a.Rank() != 0 || b.Rank() != 0 || c.Rank() != 1 {
		t.Errorf("ranks %d, %d, %d", a.Rank(), b.Rank(), c.Rank())
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestProcess_WaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{})
	defer g.Close()
	p := obey.Go(g, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Wait(ctx); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	if err := p.Signal(os.Kill); err != nil {
		t.Error(err)
	}
	if err := p.Wait(testutil.Context(t)); !errors.Is(err, shoal.ErrExited) {
		t.Errorf("got %v", err)
	}
	if err := p.Signal(os.Kill); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to a process that has ended: %v", err)
	}
}
