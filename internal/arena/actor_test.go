package arena_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

const actorEnv = "SHM_TEST_ACTOR"

// actors are what a process that a test starts can be. Each gets the domain that it inherited, or
// nil, and its arguments. It says lines on standard output; the test kills it or closes its
// standard input.
var actors = map[string]func(d *arena.Domain, args []string) error{}

func act(name string) error {
	var d *arena.Domain
	if os.Getenv(actorEnv+"_FILES") != "" {
		var err error
		d, err = arena.Attach(os.NewFile(3, "control"), os.NewFile(4, "data"))
		if err != nil {
			return err
		}
	}
	go func() { // an actor does not outlive its test
		time.Sleep(time.Minute)
		os.Exit(3)
	}()
	return actors[name](d, os.Args[1:])
}

// say tells the test something.
func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// untilKilled blocks until the test closes the actor's standard input.
func untilKilled() { io.Copy(io.Discard, os.Stdin) }

// An actor is a process that a test has started.
type actor struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
	in    io.WriteCloser
}

// start runs an actor that inherits d's files, unless d is nil.
func start(t testing.TB, d *arena.Domain, name string, args ...string) *actor {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), actorEnv+"="+name, "GORACE=atexit_sleep_ms=0")
	if d != nil {
		cmd.ExtraFiles = d.Files()
		cmd.Env = append(cmd.Env, actorEnv+"_FILES=1")
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	testutil.NoError(t, err)
	out, err := cmd.StdoutPipe()
	testutil.NoError(t, err)
	testutil.NoError(t, cmd.Start())
	a := &actor{t, cmd, bufio.NewScanner(out), in}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return a
}

// hear returns the actor's next line.
func (a *actor) hear() string {
	a.t.Helper()
	if !a.lines.Scan() {
		a.t.Fatalf("actor %v said nothing more: %v", a.cmd.Args, a.lines.Err())
	}
	return strings.TrimSpace(a.lines.Text())
}

// kill ends the actor with SIGKILL and waits for its end, not for anybody's notice of it.
func (a *actor) kill() {
	a.t.Helper()
	testutil.NoError(a.t, a.cmd.Process.Kill())
	a.cmd.Wait()
}

// finish closes the actor's standard input and waits for it to end well.
func (a *actor) finish() {
	a.t.Helper()
	a.in.Close()
	testutil.NoError(a.t, a.cmd.Wait())
}

func handleArg(s string) arena.Handle {
	var h uint64
	if _, err := fmt.Sscan(s, &h); err != nil {
		panic(err)
	}
	return arena.Handle(h)
}

func argOf(h arena.Handle) string { return fmt.Sprint(uint64(h)) }
