package examples_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// watchdog is far beyond what an example takes.
const watchdog = 2 * time.Minute

// TestExamplesPrintWhatTheyPromise builds the examples, as a user does, and runs each.
func TestExamplesPrintWhatTheyPromise(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./...").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
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
		{[]string{"goroutines"},
			`^\d+ workers by goroutine: \d+\.\d\d times as fast as one; results 3\.2e\+06 and 3\.2e\+06\n$`},
		{[]string{"goroutines", "-processes"},
			`^\d+ workers by spawn: \d+\.\d\d times as fast as one; results 3\.2e\+06 and 3\.2e\+06\n$`},
		{[]string{"named"},
			`^(rank \d found a float32 tensor of shape \[2 3 4\] and added \d0\n){2}arange \+ 30: true\n$`},
		{[]string{"region"}, `^one died \(killed\), four counted \[2000 2000\]\n$`},
		{[]string{"serve"}, `^15 processes killed, \d+ versions, \d+ requests: 0 failed, 0 wrong, 0 sent again\n$`},
		{[]string{"serve", "-accept"},
			`^15 processes killed, \d+ versions, \d+ requests: 0 failed, 0 wrong, \d+ sent again\n$`},
		{[]string{"counters"}, `^4 processes added up to 5000: \[670 2670 1660\]\n$`},
		{[]string{"value"}, `^locked 4000, added 4000, 12000 points in 4000 games\n$`},
		{[]string{"progress"}, `^1000 numbers, at most 178 steps\n$`},
		{[]string{"pipe"}, `^1 squared is 1\n2 squared is 4\n3 squared is 9\n$`},
		{[]string{"double"}, `^tensor\(\[2., 4., 6.\]\)\n$`},
		{[]string{"queue"}, `^(\d squared is \d+, says [01]\n){10}$`},
		{[]string{"hogwild"}, `^2 processes trained one network: 9\d\d of 1000 digits are right\n$`},
		{[]string{"allreduce"}, `^the replicas are equal: true\n9\d\d of 1000 digits are right\n$`},
		{[]string{"survivors"},
			`^(shoal: train rank [20] .*: signal: killed\n){2}(rank [13], one of 2: tensor\(\[1\.0000, 2\.0000, 3\.0000\]\)\n){2}$`},
		{[]string{"dataservice"}, `^18000 samples in 3 epochs of 6000; the loss is below 0\.2: true\n$`},
		{[]string{"dataparallel"}, `^(epoch \d: loss 0\.\d\d\n){3}9\d\d of 1000 digits are right\n$`},
		{[]string{"periodic"}, `^(round \d: 9\d\d of 1000 digits are right\n){5}$`},
		{[]string{"replicas"},
			`^private: parent \[0\.00 0\.00\], worker 0 \[1\.00 2\.00\], worker 1 \[3\.00 4\.00\]\nreduced: parent \[0\.00 0\.00\], worker 0 \[2\.00 3\.00\], worker 1 \[2\.00 3\.00\]\n$`},
		{[]string{"a3c"},
			`^(episode +\d+: mean return +\d+\.\d\n)*solved in \d+ episodes: mean return (19[5-9]|[2-5]\d\d)\.\d\n$`},
	} {
		if n := lines(t, c.command[0]); n >= 90 {
			t.Errorf("%s has %d lines", c.command[0], n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		var errs strings.Builder // warnings about the machine, as a rule
		run := exec.CommandContext(ctx, filepath.Join(bin, c.command[0]), c.command[1:]...)
		run.Stderr = &errs
		out, err := run.Output()
		if err != nil || !regexp.MustCompile(c.want).Match(out) {
			t.Errorf("%q: %v\n%s%s\nwant %s", c.command, err, out, &errs, c.want)
		}
	}
}

// TestExamplesSayWhatTheyTeach reads the first line of each, and wants the page that lists them to
// say the same.
func TestExamplesSayWhatTheyTeach(t *testing.T) {
	files, err := filepath.Glob("*/main.go")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, row := range regexp.MustCompile(
		`(?m)^\| \[(\w+)\]\((\w+)/main\.go\) \| (.+?) \| .+ \|$`).FindAllStringSubmatch(string(page), -1) {
		if rows[row[1]] = row[3]; row[1] != row[2] {
			t.Errorf("%s leads to %s", row[1], row[2])
		}
	}
	lesson := regexp.MustCompile(`^// [A-Z][a-z0-9]* is the lesson of ([^:,.(]+)`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Dir(f)
		m := lesson.FindSubmatch(bytes.ReplaceAll(text, []byte("\n// "), []byte(" ")))
		switch {
		case rows[name] == "":
			t.Errorf("README.md does not have %s", name)
		case m == nil && !bytes.HasPrefix(text, []byte("// Command "+name+" ")):
			t.Errorf("%s: the package comment does not begin with %q", name, "Command "+name)
		case m != nil && rows[name] != string(m[1]):
			t.Errorf("README.md calls %s the lesson of %q, and it says %q", name, rows[name], m[1])
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("README.md has a row for %s, which is not there", name)
	}
}

// lines returns how long the longest file of an example is.
func lines(t *testing.T, example string) (most int) {
	files, err := filepath.Glob(filepath.Join(example, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", example, len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, bytes.Count(text, []byte("\n")))
	}
	return most
}
