//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runText runs a table's steps without an own /dev/shm, and returns what is printed.
func runText(t *testing.T, ctx context.Context, text string) (ok bool, out string) {
	t.Helper()
	tab, err := parseTable(text)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	r := newRunner(tab.steps, t.TempDir(), []string{"GREETING=hello"}, &buf)
	r.apart = []string{"env"}
	ok = r.run(ctx)
	reasons := make(map[string]string)
	for _, s := range tab.steps {
		reasons[s.name] = "always"
	}
	r.summary(tab.steps, reasons)
	return ok, buf.String()
}

func TestRunner_RunsLanesBesideEachOther(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	text := strings.ReplaceAll(`
step test
	group always
	run echo $GREETING world
	run mkfifo FIFO
step tool
	group install
	run echo installed
step writes
	group always
	lane side
	needs tool
	run echo "from the side" >FIFO
step reads
	group always
	run cat FIFO
`, "FIFO", fifo)
	ok, out := runText(t, t.Context(), text)
	if !ok {
		t.Fatal(out)
	}
	for _, want := range []string{
		"== test: ok after ", "\nhello world\n", "== reads: ok after ", "\nfrom the side\n", "== tool: ok",
		"\nreads            always ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if strings.Index(out, "== test: ok") > strings.Index(out, "reads begins") {
		t.Errorf("the first step did not run alone:\n%s", out)
	}
}

func TestRunner_SideLaneTakesStepsOfTheMainLane(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	text := strings.ReplaceAll(`
step test
	group always
	run mkfifo FIFO
step aside
	group always
	lane side
	run true
step reads
	group always
	run cat FIFO
step between
	group always
	run true
step writes
	group always
	run echo "from the last one" >FIFO
`, "FIFO", fifo)
	ok, out := runText(t, t.Context(), text)
	if !ok || !strings.Contains(out, "\nfrom the last one\n") {
		t.Error(out)
	}
	if strings.Count(out, " begins\n") != 5 {
		t.Errorf("want each step once:\n%s", out)
	}
}

func TestRunner_ReportsTheCPUTimeOfSteps(t *testing.T) {
	t.Parallel()
	loop := step{name: "loop", lane: laneMain, limit: time.Minute, script: "bash -c 'for i in {1..100000}; do :; done'"}
	r := newRunner([]step{loop}, t.TempDir(), nil, io.Discard)
	if !r.run(t.Context()) {
		t.Fatal("the step failed")
	}
	if res := r.results["loop"]; res.cpu < 10*time.Millisecond || res.cpu > 4*res.took {
		t.Errorf("got %v of CPU time in %v", res.cpu, res.took)
	}
}

func TestRunner_StopsAfterAFailure(t *testing.T) {
	ok, out := runText(t, t.Context(), `
step test
	group always
	run true
step fails
	group 1
	run echo first
	run false
	run echo unreached
step later
	group 1
	needs fails
	run true
`)
	if ok {
		t.Error("want a failure")
	}
	for _, want := range []string{"== fails: FAILED after", "FAILED: fails after ",
		": exit status 1. Its last lines:\nfirst\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "unreached") || strings.Contains(out, "later begins") {
		t.Errorf("something ran after the failure:\n%s", out)
	}
	if !strings.Contains(strings.Join(strings.Fields(out), " "), "later 1 not run always") {
		t.Errorf("want the step that did not run in\n%s", out)
	}
}

func TestRunner_KeepsGoingAfterAFailureIfAsked(t *testing.T) {
	t.Parallel()
	r := newRunner([]step{
		{name: "first", lane: laneMain, limit: time.Minute, script: "exit 3"},
		{name: "second", lane: laneMain, limit: time.Minute, script: "echo reached"},
	}, t.TempDir(), nil, io.Discard)
	r.keepGoing = true
	if r.run(t.Context()) {
		t.Error("a run with a failed step succeeded")
	}
	if res := r.results["second"]; res == nil || !res.ended || res.err != nil {
		t.Errorf("the step after the failed one: got %+v, want it to have run", res)
	}
}

func TestRunner_EndsAStepWithItsProcesses(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	began := time.Now()
	ok, out := runText(t, t.Context(), `
step slow
	group always
	limit 200ms
	run sleep 60 & echo $! >`+pid+`
	run wait
`)
	if ok || !strings.Contains(out, "above its limit of 200ms") || time.Since(began) > 30*time.Second {
		t.Errorf("after %v: %s", time.Since(began), out)
	}
	if _, err := os.Stat(pid); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ok, out := runText(t, ctx, "step test\n\tgroup always\n\trun true\n"); ok || strings.Contains(out, "begins") {
		t.Errorf("a context that has ended: %s", out)
	}
}
