package examples_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/nats/broker"
)

// TestElastic_KilledWorkers trains while two workers of the example die between storing a gradient
// and acknowledging its job, and this test kills others that join, each in the middle of its work.
// The versions say that no job was applied twice, and the example waits until all are.
func TestElastic_KilledWorkers(t *testing.T) {
	b, err := broker.Start(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	program := filepath.Join(t.TempDir(), "elastic")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./elastic").
		CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	run := exec.CommandContext(ctx, program, b.URL())
	var out, errs strings.Builder
	run.Stdout, run.Stderr = &out, &errs
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	killed := 0
	for over := false; !over; {
		if b.Stats().Streams < 2 { // what it works on is not there yet, or gone
			over = wait(ended, &err)
			continue
		}
		before := b.Stats().Connections
		one := exec.CommandContext(ctx, program, "-join", b.URL())
		if err := one.Start(); err != nil {
			t.Fatal(err)
		}
		for !over && b.Stats().Connections <= before {
			over = wait(ended, &err)
		}
		for in := b.Stats().In; !over && b.Stats().In < in+40; {
			over = wait(ended, &err)
		}
		one.Process.Kill()
		one.Wait()
		killed++
	}
	want := regexp.MustCompile(`^600 jobs applied in 600 versions by 6 workers; 9\d\d of 1000 `)
	if err != nil || !want.MatchString(out.String()) {
		t.Errorf("%v\n%s%s", err, &out, &errs)
	}
	if killed < 2 {
		t.Errorf("%d workers that joined were killed", killed)
	}
	t.Logf("%d workers that joined were killed: %s", killed, &out)
}

// wait waits for a moment, and reports whether a process has ended.
func wait(ended chan error, err *error) bool {
	select {
	case *err = <-ended:
		return true
	case <-time.After(time.Millisecond):
		return false
	}
}
