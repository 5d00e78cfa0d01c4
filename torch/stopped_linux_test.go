package torch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/test/testutil"
)

// TestProcess_AStoppedPythonEndsWithItsParent stops a Python and kills the Go process that has
// started it, from a thread that has ended since.
func TestProcess_AStoppedPythonEndsWithItsParent(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		cmd := exec.CommandContext(testContext(t), os.Args[0], "-test.run", "^TestProcess_Parent$")
		cmd.Env = append(os.Environ(), "SHOAL_TORCH_PARENT="+py.path, "SHOAL_INTEROP=")
		cmd.Stderr = os.Stderr
		out := testutil.Value(cmd.StdoutPipe())(t)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := 0
		if _, err := fmt.Fscanf(out, "python %d\n", &pid); err != nil {
			t.Fatal(err)
		}
		defer syscall.Kill(pid, syscall.SIGKILL)
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		testutil.Eventually(t, func() bool { return state(pid) == "T" }, "waited in vain for Python to be stopped")
		cmd.Process.Kill()
		cmd.Wait()
		ended := func() bool { s := state(pid); return s == "" || s == "Z" || s == "X" }
		testutil.Eventually(t, ended, "waited in vain for Python to end, whose parent was killed")
	})
}

// TestProcess_Parent is the Go process of that test.
func TestProcess_Parent(t *testing.T) {
	path := os.Getenv("SHOAL_TORCH_PARENT")
	if path == "" {
		t.Skip("only a part of TestProcess_AStoppedPythonEndsWithItsParent")
	}
	var pid, thread int
	onThreadThatEnds(func() {
		p := testutil.Value(Python{Path: path}.Spawn(context.Background(),
			"multiprocessing.connection:Connection.recv"))(t)
		pid, thread = p.PID(), syscall.Gettid()
	})
	testutil.Eventually(t, func() bool {
		_, err := os.Stat(fmt.Sprint("/proc/self/task/", thread))
		return err != nil
	}, "waited in vain for the thread that has started Python to end")
	fmt.Printf("python %d\n", pid)
	select {} // until it is killed
}

// onThreadThatEnds does f on another thread than the first, which never ends.
func onThreadThatEnds(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good
		if syscall.Gettid() == os.Getpid() {
			onThreadThatEnds(f)
		} else {
			f()
		}
	}()
	<-done
}
