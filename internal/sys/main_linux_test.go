package sys_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// roles are what the test binary does when it is started by a test as another process.
var roles = map[string]func() error{}

// patience bounds every wait of a test, far above what a loaded machine needs.
const patience = 20 * time.Second

const roleKey = "SYS_TEST_ROLE"

func TestMain(m *testing.M) {
	role, ok := os.LookupEnv(roleKey)
	if !ok {
		shoaltest.TestMain(m)
	}
	run, ok := roles[role]
	if !ok {
		fmt.Println("no such role:", role)
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// command returns the test binary in the given role.
func command(role string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	// Without GORACE every process of a race build sleeps a second at exit.
	cmd.Env = append(os.Environ(), roleKey+"="+role, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = patience // for what a grandchild that hangs keeps open
	return cmd
}

// A child is a process in a role that has printed its first line.
type child struct {
	*exec.Cmd
	line string
}

// start runs a role until it has printed a line; it is killed when the test ends.
func start(t *testing.T, cmd *exec.Cmd) child {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// Not closed by us before the child ends: roles wait for the end of their input.
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	c := child{Cmd: cmd}
	within(t, "the first line of "+cmd.Path, func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Errorf("the child said nothing: %v", err)
		}
		c.line = strings.TrimSpace(line)
	})
	return c
}

// finish runs a role to its end and returns what it printed.
func finish(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out strings.Builder
	cmd.Stdout = &out
	testutil.NoError(t, cmd.Start())
	watchdog := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer watchdog.Stop()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return strings.TrimSpace(out.String())
}

// readyAndWait tells the test that the role stands, and stays until the test is done with it.
func readyAndWait() {
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadByte()
}

// within is the watchdog of tests that could block for ever.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("still waiting for %s", what)
	}
}
