package shoal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A child that is forked and goes on in the same program has one thread and the locks of all: there
// is none, for any way to start.
func TestSpawn_EveryForkIsFollowedByAnExec(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	file := filepath.Join(t.TempDir(), "calls")
	cmd := exec.CommandContext(testutil.Context(t), strace, "-f", "-qq", "-e", "trace=clone,clone3,fork,vfork,execve",
		"-o", file, os.Args[0], "-test.run=^TestStartMethod_EachStarts$", "-test.count=1")
	cmd.Env = append(os.Environ(), "SHOAL_TEST_TRACED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(strings.ToLower(string(out)), "ptrace") {
			t.Skipf("nothing can be traced here: %s", out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	forked, executed := forks(string(text))
	if len(forked) < 6 {
		t.Errorf("%d processes were started", len(forked))
	}
	for pid, call := range forked {
		if !executed[pid] {
			t.Errorf("process %s has executed nothing: %s", pid, call)
		}
	}
}

// TestStartMethod_EachStarts is what is traced.
func TestStartMethod_EachStarts(t *testing.T) {
	if os.Getenv("SHOAL_TEST_TRACED") == "" {
		t.Skip("only for TestSpawn_EveryForkIsFollowedByAnExec")
	}
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart, shoal.GoroutineStart} {
		g := shoal.NewGroup(testutil.Context(t), shoal.Options{Start: m})
		for range 3 {
			nothing.Go(g, struct{}{})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}
}

var (
	callLine   = regexp.MustCompile(`^(\d+) +(clone3?|fork|vfork|execve)\((.*)$`)
	resumeLine = regexp.MustCompile(`^(\d+) +<\.\.\. (clone3?|fork|vfork|execve) resumed>(.*)$`)
	resultOf   = regexp.MustCompile(`= (\d+)(?: .*)?$`)
)

// forks reads what strace wrote: the processes that were forked, threads left out, with the call
// that did it, and those that have executed a program.
func forks(trace string) (forked map[string]string, executed map[string]bool) {
	forked, executed = make(map[string]string), make(map[string]bool)
	begun := make(map[string]string) // by caller: what a call began with that has not returned yet
	for line := range strings.Lines(trace) {
		line = strings.TrimSpace(line)
		caller, name, rest := "", "", ""
		if f := callLine.FindStringSubmatch(line); f != nil {
			caller, name, rest = f[1], f[2], f[3]
		} else if f := resumeLine.FindStringSubmatch(line); f != nil {
			caller, name, rest = f[1], f[2], begun[f[1]]+f[3]
		} else {
			continue
		}
		result := resultOf.FindStringSubmatch(rest)
		switch {
		case strings.HasSuffix(rest, "<unfinished ...>"):
			begun[caller] = strings.TrimSuffix(rest, "<unfinished ...>")
		case result == nil: // it failed
		case name == "execve":
			executed[caller] = true
		// package os tries whether there are pidfds, with a child that ends at once
		case strings.Contains(rest, "CLONE_VM") && !strings.Contains(rest, "SIGCHLD"):
		case !strings.Contains(rest, "CLONE_THREAD"):
			forked[result[1]] = fmt.Sprintf("%s(%s", name, rest)
		}
	}
	return forked, executed
}
