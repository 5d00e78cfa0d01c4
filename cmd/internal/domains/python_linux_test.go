package domains_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/test/testutil"
)

// trainer is a Python program with a spawned process that waits for a message. It ends with its
// input.
const trainer = `
import sys
import shoal.multiprocessing as mp

def wait(q):
    q.get()

if __name__ == "__main__":
    context = mp.get_context("spawn")
    q, held = context.Queue(), context.Queue()
    held.put(b"0" * 1000)
    p = context.Process(target=wait, args=(q,), name="actor-7")
    p.start()
    print(p.pid, flush=True)
    sys.stdin.read()
    q.put(None)
    p.join()
    sys.exit(p.exitcode)
`

// Processes of Python are shown with their script or their name, what they hold, and what they
// wait for.
func TestLook_ShowsPythonProcesses(t *testing.T) {
	native, err := filepath.Abs("../../../build/native/" + runtime.GOARCH + "/python")
	testutil.NoError(t, err)
	if _, err := os.Stat(native); err != nil {
		t.Skip("the native parts are not built: make native")
	}
	script := filepath.Join(t.TempDir(), "trainer.py")
	testutil.NoError(t, os.WriteFile(script, []byte(trainer), 0o666))
	cmd := exec.Command("python3", script)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+native)
	cmd.Stderr = os.Stderr
	in := testutil.Value(cmd.StdinPipe())(t)
	out := testutil.Value(cmd.StdoutPipe())(t)
	testutil.NoError(t, cmd.Start())
	defer func() { testutil.NoError(t, in.Close(), cmd.Wait()) }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	var watcher domains.Watcher
	testutil.Eventually(t, func() bool {
		census := testutil.Value(watcher.Look(testutil.Context(t), 10*time.Millisecond))(t)
		i := slices.IndexFunc(census.Domains, func(d domains.Domain) bool {
			return len(d.Processes) > 0 && d.Processes[0].PID == cmd.Process.Pid
		})
		return i >= 0 && isTrainer(census.Domains[i])
	}, "the trainer and its process, which waits for a message")
}

// isTrainer reports whether a domain has the two processes of trainer, and the wait of the second.
func isTrainer(d domains.Domain) bool {
	root := d.Processes[0]
	child := slices.IndexFunc(d.Processes, func(p domains.Process) bool {
		return p.Name == "actor-7" && p.Role == domains.Worker && p.Holds > 0
	})
	var text strings.Builder
	return root.Name == "trainer.py" && root.Holds > 0 && child >= 0 &&
		slices.ContainsFunc(d.Waits, func(w domains.Wait) bool {
			return w.PID == d.Processes[child].PID && w.For == "message"
		}) && d.Print(&text) == nil && strings.Contains(text.String(), "trainer.py")
}
