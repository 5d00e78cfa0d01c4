package shoal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A lockedBuffer may be written to by several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Each restart is a line of the log, an event and a count.
func TestRestart_IsReported(t *testing.T) {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart, shoal.GoroutineStart} {
		t.Run(m.String(), func(t *testing.T) { reportsRestarts(t, m) })
	}
}

func reportsRestarts(t *testing.T, m shoal.StartMethod) {
	var lines lockedBuffer
	log.SetOutput(&lines)
	defer log.SetOutput(os.Stderr)
	events := make(chan shoal.RestartEvent, 2)
	before := shoal.MemoryStats().Restarts
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Start: m, FirstRank: 7,
		Restart:   shoal.Restart{Max: -1, Backoff: time.Millisecond},
		OnRestart: func(e shoal.RestartEvent) { events <- e }})
	flaky.Go(g, t.TempDir())
	testutil.NoError(t, g.Wait())
	seen := map[int]bool{}
	for range 2 {
		e := <-events
		seen[e.Attempt] = true
		pe, ok := errors.AsType[*shoal.ProcessError](e.Err)
		if !ok || e.Func != "flaky" || e.Rank != 7 || !strings.Contains(pe.Error(), "not yet") {
			t.Errorf("got event %+v", e)
		}
		line := fmt.Sprintf("func=flaky rank=7 attempt=%d pause=%v ", e.Attempt, e.Pause)
		if !strings.Contains(lines.String(), line) {
			t.Errorf("got log %q, want one with %q", lines.String(), line)
		}
	}
	if !seen[1] || !seen[2] {
		t.Errorf("got attempts %v, want 1 and 2", seen)
	}
	if got := shoal.MemoryStats().Restarts - before; got != 2 {
		t.Errorf("got %d restarts in the figures, want 2", got)
	}
}

// OnRestart may close the group.
func TestRestart_ItsHookMayCloseTheGroup(t *testing.T) {
	opts := shoal.Options{Restart: shoal.Restart{Max: -1, Backoff: time.Millisecond}}
	closed := make(chan error)
	var once sync.Once
	var g *shoal.Group
	ready := make(chan struct{})
	opts.OnRestart = func(shoal.RestartEvent) { once.Do(func() { <-ready; closed <- g.Close() }) }
	g = shoal.NewGroup(testutil.Context(t), opts)
	fails.Go(g, "error")
	close(ready)
	<-closed // whatever the error: the failure that came before, or none
}

func init() {
	programs["restart without descriptors"] = func() { shoal.Main(restartWithoutDescriptors) }
}

// restartWithoutDescriptors kills a process while no file can be opened, and starts another one.
func restartWithoutDescriptors(ctx context.Context) error {
	events := make(chan shoal.RestartEvent, 1000)
	g := shoal.NewGroup(ctx, shoal.Options{Restart: shoal.Restart{Max: -1, Backoff: time.Millisecond,
		MaxBackoff: 10 * time.Millisecond}, OnRestart: func(e shoal.RestartEvent) { events <- e }})
	defer g.Close()
	killed, other := obey.Go(g, false), obey.Go(g, false)
	if err := fewDescriptors(); err != nil {
		return err
	}
	giveBack := takeDescriptors(0)
	pid := killed.PID()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil { // not by Process.Kill, whose end is wanted
		return err
	}
	late := obey.Go(g, false) // its first start fails
	failed := map[int]int{}
	for failed[killed.Rank()] < 3 || failed[late.Rank()] < 3 {
		e := <-events
		if errors.Is(e.Err, syscall.EMFILE) {
			failed[e.Rank]++
		} else if e.Rank != killed.Rank() {
			return fmt.Errorf("got event %+v, want one of EMFILE", e)
		}
	}
	if p := obey.Go(shoal.NewGroup(ctx, shoal.Options{}), false); !errors.Is(p.Wait(ctx), syscall.EMFILE) {
		return fmt.Errorf("without Restart: got %v, want EMFILE at once", p.Wait(ctx))
	}
	giveBack()
	for ctx.Err() == nil && (killed.PID() == pid || !killed.Alive() || !late.Alive() || !other.Alive()) {
		time.Sleep(time.Millisecond)
	}
	if killed.Restarts() != 1 || late.Restarts() != 0 {
		return fmt.Errorf("got %d and %d restarts, want 1 and 0", killed.Restarts(), late.Restarts())
	}
	return g.Close()
}

func TestRestart_GoesOnAfterATransientFailureOfAStart(t *testing.T) {
	t.Parallel()
	status, out := statusOf(t, "restart without descriptors")
	if status != 0 || !strings.Contains(out, "too many open files") {
		t.Errorf("got status %d and output %q, want 0 and log lines that name EMFILE", status, out)
	}
}

// A hook that panics is logged, and the group goes on.
func TestRestart_APanicOfItsHookIsLogged(t *testing.T) {
	var calls atomic.Int32
	opts := shoal.Options{Restart: shoal.Restart{Max: 3, Backoff: time.Millisecond},
		OnRestart: func(shoal.RestartEvent) { calls.Add(1); panic("on purpose") }}
	g := shoal.NewGroup(testutil.Context(t), opts)
	fails.Go(g, "error")
	if err := g.Wait(); err == nil {
		t.Error("a process that fails has no error")
	}
	testutil.Eventually(t, func() bool { return calls.Load() == 3 }, "the hook was not called three times")
}
