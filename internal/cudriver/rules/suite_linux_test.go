package rules_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// suite runs scripts/gpu-suite beside programs that are scripts, and returns its report.
func suite(t *testing.T, programs map[string]string, steps ...string) (report, words string, status int) {
	t.Helper()
	c, out := suiteCommand(t, programs, steps...)
	said, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(filepath.Join(out, "gpu-report.md"))
	return string(b), string(said), c.ProcessState.ExitCode()
}

// suiteCommand is what suite runs, and the folder of its report.
func suiteCommand(t *testing.T, programs map[string]string, steps ...string) (c *exec.Cmd, out string) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	dir := t.TempDir()
	out = t.TempDir()
	script, err := os.ReadFile("../../../scripts/gpu-suite")
	if err != nil {
		t.Fatal(err)
	}
	programs["gpu-suite"] = string(script)
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c = exec.CommandContext(t.Context(), filepath.Join(dir, "gpu-suite"), steps...)
	c.Env = append(os.Environ(), "OUT="+out, "PYTHON=/there/is/none", "CUDA_VISIBLE_DEVICES=MIG-1",
		"SHOAL_CUDA_SIMULATE=")
	return c, out
}

const machine = "#!/bin/sh\necho '{\"devices\":[{}]} '\"$*\"\n"

// Where things crash there is a part that says so, and the others; what the simulator has wrong
// comes first.
func TestSuite_ReportsWhatFails(t *testing.T) {
	report, _, status := suite(t, map[string]string{
		"shoal": machine, "shoal-accel": machine,
		"rules.test": "#!/bin/sh\necho 'T5  opening twice'\necho 'DISAGREES  T5, opening twice: two addresses; the simulator: one'\nexit 1\n",
		"cuda.test":  "#!/bin/sh\necho 'the first words'\nkill -KILL $$\n",
	})
	at := 0
	for _, want := range []string{
		"# What ran on a GPU\n", "CUDA_VISIBLE_DEVICES is MIG-1.\n",
		"## Where the simulator is wrong\n\n- T5, opening twice: two addresses; the simulator: one\n",
		"## Steps that did not end well\n\n- 2-rules\n- 3-figures\n- 4-tests\n- 5-killed\n- 7-python\n- 8-training\n",
		"## The machine", "Exit status 0", "doctor\n", "## What the simulator says", "Exit status 1 ",
		"    T5  opening twice\n",
		"## The tests of package cuda", "Exit status 137 ", "    the first words\n",
		"## Rows of shoal bench cuda; /there/is/none has no PyTorch that sees a GPU\n", "Exit status 0",
		" bench cuda\n", "## PyTorch, CuPy and Numba",
	} {
		i := strings.Index(report[at:], want)
		if i < 0 {
			t.Fatalf("there is no %q behind what comes before it:\n%s", want, report)
		}
		at += i + len(want)
	}
	if status != 1 {
		t.Errorf("it ended with %d", status)
	}
}

func TestSuite_OfGoodSteps(t *testing.T) {
	good := "#!/bin/sh\necho PASS\n"
	report, words, status := suite(t, map[string]string{"shoal": machine, "shoal-accel": machine,
		"rules.test": good, "cuda.test": good}, "2", "4")
	if status != 0 || !strings.Contains(report, "Nowhere, in the steps that ran.") ||
		!strings.Contains(report, "None, of the steps that ran.") || strings.Contains(report, "The machine") {
		t.Errorf("%d: %s\n%s", status, words, report)
	}
	if _, words, status := suite(t, map[string]string{"shoal-accel": machine}, "9"); status != 2 ||
		!strings.Contains(words, "there is no step 9") {
		t.Errorf("%d: %s", status, words)
	}
}

// An interrupt does not wait for the step, and leaves the report of what was done.
func TestSuite_IsInterrupted(t *testing.T) {
	c, out := suiteCommand(t, map[string]string{
		"shoal": machine, "shoal-accel": machine, "rules.test": "#!/bin/sh\necho begun\nexec sleep 1000\n",
		"cuda.test": "#!/bin/sh\necho PASS\n",
	}, "4", "2", "5")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if b, _ := os.ReadFile(filepath.Join(out, "2-rules.log")); strings.Contains(string(b), "begun") {
			break
		}
		if time.Since(begin) > patience {
			t.Fatal("its second step does not begin")
		}
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	b, err := os.ReadFile(filepath.Join(out, "gpu-report.md"))
	if report := string(b); err != nil || !strings.Contains(report, "**It was interrupted**") ||
		!strings.Contains(report, "did not end well\n\n- 2-rules\n\n") ||
		!strings.Contains(report, "The tests of package cuda") || strings.Contains(report, "200 killed") {
		t.Errorf("%v\n%s", err, report)
	}
	if c.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v", c.ProcessState)
	}
}

func TestSuite_WithoutADeviceFails(t *testing.T) {
	report, words, status := suite(t, map[string]string{"shoal-accel": "#!/bin/sh\necho 'no GPU: none'\n"})
	if status != 1 || report != "" || !strings.Contains(words, "no GPU: none") ||
		!strings.Contains(words, "nothing was run") {
		t.Errorf("%d: %s\n%s", status, words, report)
	}
}
