package torch

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestChild_WorkersOfADeadScriptEnd kills a script whose collate_fn is Python's. Its workers have
// not begun then. PyTorch's own workers would wait for the script for ever, because they remember
// the number of their parent when they begin.
func TestChild_WorkersOfADeadScriptEnd(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		ends, held, err := os.Pipe() // which all processes have open
		if err != nil {
			t.Fatal(err)
		}
		defer ends.Close()
		cmd := exec.Command(py.path, "testdata/orphans.py", os.Args[0], t.TempDir())
		cmd.Env, cmd.SysProcAttr = pythonEnv(), &syscall.SysProcAttr{Setpgid: true}
		cmd.Stdout = held
		err = cmd.Start()
		held.Close()
		if err != nil {
			t.Fatal(err)
		}
		err = cmd.Wait()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
			t.Error("the script:", err)
		}
		ends.SetReadDeadline(time.Now().Add(time.Minute)) // PyTorch looks every five seconds
		if _, err := io.Copy(io.Discard, ends); err != nil {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			t.Error("its workers:", err)
		}
	})
}
