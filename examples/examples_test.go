package examples_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// watchdog is far beyond what an example takes.
const watchdog = 2 * time.Minute

// TestExamplesPrintWhatTheyPromise builds each example, as a user does, and runs it.
func TestExamplesPrintWhatTheyPromise(t *testing.T) {
	for _, c := range []struct {
		command []string
		want    string
	}{
		{[]string{"columns"}, `^(column \d: all 1000 elements from 20 to 20, .*\n){3}$`},
		{[]string{"buffers"}, `^150 buffers of 1024 KiB came by\nsince round 2: 0 bytes copied, 0 blocks allocated\n$`},
		{[]string{"sentinel"}, `^3 consumers added 1000 numbers to 499500\n$`},
		{[]string{"sentinel", "-finish"}, `^3 consumers added 1000 numbers to 499500\n$`},
		{[]string{"seeds"}, `^(rank \d: weights -0\.367028, noise (-1\.262114|1\.813109|-0\.764526)\n){3}$`},
		{[]string{"tasks"}, `^sums of the chunks: \[0 100000 200000 300000 400000 500000\], 0 tasks left\n$`},
		{[]string{"starmap"}, `^chunk 0: each column sums to 31125\n(chunk \d: .*\n){3}all together: 4\.995e\+07\n$`},
		{[]string{"goroutines"}, `^\d+ workers by goroutine: \d+\.\d\d times as fast as one; results 3\.2e\+06 and 3\.2e\+06\n$`},
		{[]string{"goroutines", "-processes"}, `^\d+ workers by spawn: \d+\.\d\d times as fast as one; results 3\.2e\+06 and 3\.2e\+06\n$`},
		{[]string{"named"}, `^(rank \d found a float32 tensor of shape \[2 3 4\] and added \d0\n){2}arange \+ 30: true\n$`},
		{[]string{"region"}, `^one died \(killed\), four counted \[2000 2000\]\n$`},
		{[]string{"counters"}, `^4 processes added up to 5000: \[670 2670 1660\]\n$`},
		{[]string{"pipe"}, `^1 squared is 1\n2 squared is 4\n3 squared is 9\n$`},
		{[]string{"hogwild"}, `^2 processes trained one network: 9\d\d of 1000 digits are right\n$`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		binary := filepath.Join(t.TempDir(), c.command[0])
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./"+c.command[0]).CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", c.command[0], err, out)
		}
		var errs strings.Builder // warnings about the machine, as a rule
		run := exec.CommandContext(ctx, binary, c.command[1:]...)
		run.Stderr = &errs
		out, err := run.Output()
		if err != nil || !regexp.MustCompile(c.want).Match(out) {
			t.Errorf("%q: %v\n%s%s\nwant %s", c.command, err, out, &errs, c.want)
		}
	}
}
