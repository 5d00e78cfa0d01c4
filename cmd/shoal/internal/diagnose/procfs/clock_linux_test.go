package procfs_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
)

func TestSinceRun_IsTheTimeOfASleep(t *testing.T) {
	cmd := exec.Command("sleep", "100")
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	var last time.Duration
	for range 3 {
		time.Sleep(100 * time.Millisecond)
		p := &procfs.Process{Stat: procfs.Stat{PID: cmd.Process.Pid}}
		procfs.Machine.ReadThreads(p, true)
		if len(p.Threads) != 1 {
			t.Fatalf("%d threads, want 1", len(p.Threads))
		}
		since, ok := procfs.Machine.SinceRun(p.PID, p.Threads[0])
		if !ok {
			t.Skip("the kernel does not tell when a thread ran last")
		}
		if since < last || since > time.Since(begin) {
			t.Errorf("the thread has slept for %v, want at least %v and at most %v", since, last, time.Since(begin))
		}
		last = since
	}
	if last < 50*time.Millisecond {
		t.Errorf("the thread has slept for %v after at least 200 ms", last)
	}
	if up := procfs.Machine.Uptime(); up < time.Second {
		t.Errorf("the machine has run for %v", up)
	}
}
