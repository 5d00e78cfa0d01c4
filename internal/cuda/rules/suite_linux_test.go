package rules_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/test/testutil"
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
		"rules.test": "#!/bin/sh\necho 'T5  opening twice'\necho 'DISAGREES  T5, opening twice: two addresses; " +
			"the simulator: one'\nexit 1\n",
		"cuda.test": "#!/bin/sh\necho 'the first words'\nkill -KILL $$\n",
	})
	at := 0
	for _, want := range []string{
		"# Runs on GPUs\n", "CUDA_VISIBLE_DEVICES is MIG-1.\n",
		"## Where the simulator is wrong\n\n- T5, opening twice: two addresses; the simulator: one\n",
		"## Parts that did not end well\n\n- 1-kernel\n- 2-rules\n- 2-queues\n- 4a-processes\n- 4b-tests\n" +
			"- 5-python\n- 5-killed\n- 6-training\n- 3-figures\n",
		"## The machine", "Exit status 0 after ", " s: 1-machine.\n", "doctor\n", "## The simulator's claims",
		"Exit status 1 ", "    T5  opening twice\n", "## The same of two streams", "## Processes, killed producers",
		"## The other tests of package cuda", "Exit status 137 ", "    the first words\n",
		"## PyTorch, CuPy and Numba", "## 200 killed consumers",
		"## Rows of shoal bench cuda; /there/is/none has no PyTorch that sees a GPU\n", "Exit status 0",
		" bench cuda\n", "## Training", "## Answers that depend",
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

func TestSuite_OfGoodGroups(t *testing.T) {
	good := "#!/bin/sh\necho PASS\n"
	report, words, status := suite(t, map[string]string{"shoal": machine, "shoal-accel": machine,
		"rules.test": good, "cuda.test": good}, "2", "4b")
	if status != 0 || !strings.Contains(report, "Nowhere, in the parts that ran.") ||
		!strings.Contains(report, "None, of those that ran.") || strings.Contains(report, "The machine") {
		t.Errorf("%d: %s\n%s", status, words, report)
	}
	if _, words, status := suite(t, map[string]string{"shoal-accel": machine}, "9"); status != 2 ||
		!strings.Contains(words, "there is no group 9") {
		t.Errorf("%d: %s", status, words)
	}
}

// NVIDIA's own tools look at the kernels where they are installed, and what they find is a failure.
func TestSuite_HasNVIDIAsToolsLookAtTheKernels(t *testing.T) {
	good := "#!/bin/sh\necho PASS\n"
	for status, tool := range map[int]string{0: "#!/bin/sh\necho \"called $*\"\n",
		1: "#!/bin/sh\necho \"called $*\"\n[ $2 = memcheck ]\n"} {
		c, out := suiteCommand(t, map[string]string{"shoal": machine, "shoal-accel": machine, "cuda.test": good,
			"compute-sanitizer": tool}, "4b")
		c.Env = append(c.Env, "PATH="+filepath.Dir(c.Path)+":"+os.Getenv("PATH"))
		said, err := c.CombinedOutput()
		b, _ := os.ReadFile(filepath.Join(out, "group-4b.md"))
		if c.ProcessState == nil || c.ProcessState.ExitCode() != status ||
			!strings.Contains(string(b), "called --tool memcheck") ||
			!strings.Contains(string(b), "called --tool racecheck") {
			t.Errorf("%v, want %d: %s\n%s", err, status, said, b)
		}
	}
}

// Kernels that are interpreted take long, so on simulated devices what trains or measures is only
// seen to run.
func TestSuite_IsBriefOnSimulatedDevices(t *testing.T) {
	says := "#!/bin/sh\necho \"$(basename $0) $*: \\\"devices\\\"\"\n"
	for simulated, brief := range map[string]bool{"/some/device": true, "": false} {
		c, out := suiteCommand(t, map[string]string{"shoal": says, "shoal-accel": says, "dist.test": says,
			"columns": says, "devices": says}, "6")
		c.Env = append(c.Env, "SHOAL_CUDA_SIMULATE="+simulated)
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		b, err := os.ReadFile(filepath.Join(out, "group-6.md"))
		check := func(want string, there bool) {
			if strings.Contains(string(b), want) != there {
				t.Errorf("on %q: %q is there: %v, %v\n%s", simulated, want, !there, err, b)
			}
		}
		check("shoal-accel bench cuda", true)
		check("hogwild --device cuda --workers 4", true)
		check("shoal-accel bench cuda --quick", brief)
		check("--workers 4 --epochs 1 --data "+out+"/few-digits", brief)
		check("## Training, and the examples, briefly", brief)
	}
}

// An interrupt does not wait for the part, and leaves the report of what was done.
func TestSuite_IsInterrupted(t *testing.T) {
	c, out := suiteCommand(t, map[string]string{
		"shoal": machine, "shoal-accel": machine, "rules.test": "#!/bin/sh\necho begun\nexec sleep 1000\n",
		"cuda.test": "#!/bin/sh\necho PASS\n",
	}, "4b", "2", "5")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	testutil.Eventually(t, func() bool {
		b, _ := os.ReadFile(filepath.Join(out, "2-rules.log"))
		return strings.Contains(string(b), "begun")
	}, "its second group does not begin")
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
		!strings.Contains(report, "The other tests of package cuda") || strings.Contains(report, "200 killed") {
		t.Errorf("%v\n%s", err, report)
	}
	if c.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v", c.ProcessState)
	}
}

func TestSuite_WithoutADeviceFails(t *testing.T) {
	report, words, status := suite(t, map[string]string{"shoal-accel": "#!/bin/sh\necho 'no GPU: none'\n"})
	if status != 1 || report != "" || !strings.Contains(words, "no GPU: none") ||
		!strings.Contains(words, "no group was run") {
		t.Errorf("%d: %s\n%s", status, words, report)
	}
}

// A machine may be lent for ten minutes a command, and give eight files back.
func TestSuite_ListsItsGroups(t *testing.T) {
	_, words, status := suite(t, map[string]string{}, "--list")
	var groups []string
	for _, m := range regexp.MustCompile(`(?m)^(\w+), (\d+) s at most$`).FindAllStringSubmatch(words, -1) {
		groups = append(groups, m[1])
		if limit, err := strconv.Atoi(m[2]); err != nil || limit < 10 || limit >= 8*60 {
			t.Errorf("%s, %v", m[0], err)
		}
	}
	if want := []string{"1", "2", "4a", "4b", "5", "6", "3"}; !slices.Equal(groups, want) || status != 0 {
		t.Errorf("%d: %v, want %v\n%s", status, groups, want, words)
	}
	c, out := suiteCommand(t, map[string]string{"shoal-accel": machine})
	said, _ := c.CombinedOutput()
	all, err := os.ReadDir(out)
	if len(all) != len(groups)+1 { // beside them, the report that joins them
		t.Errorf("%v, %v\n%s", all, err, said)
	}
}

// pack writes an archive of a program that is the suite's doctor.
func pack(t *testing.T, path, says string) {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for _, name := range []string{"shoal", "shoal-accel", "cuda.test"} {
		text := fmt.Sprintf("#!/bin/sh\necho '\"devices\" %s'\n", says)
		if err := w.WriteHeader(&tar.Header{Name: "gpu/" + name, Mode: 0o700, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{w.Close(), zip.Close(), os.WriteFile(path, b.Bytes(), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The archive is all that travels. A newer one takes the place of what was unpacked.
func TestSuite_UnpacksItsArchive(t *testing.T) {
	for _, says := range []string{"first", "second"} {
		c, out := suiteCommand(t, map[string]string{}, "1")
		archive := filepath.Join(filepath.Dir(c.Path), "gpu.tgz")
		for _, words := range []string{"older", says} {
			pack(t, archive, words)
			soon := time.Now().Add(time.Minute) // whatever the clock of the file system
			if words == "older" {
				soon = time.Now().Add(-time.Hour)
			}
			if err := os.Chtimes(archive, soon, soon); err != nil {
				t.Fatal(err)
			}
			again := exec.CommandContext(t.Context(), c.Path, c.Args[1:]...)
			again.Env = c.Env
			if words, err := again.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, words)
			}
		}
		b, err := os.ReadFile(filepath.Join(out, "group-1.md"))
		if err != nil || !strings.Contains(string(b), "    \"devices\" "+says+"\n") {
			t.Errorf("%v: %s", err, b)
		}
	}
	c, _ := suiteCommand(t, map[string]string{"gpu.tgz": "no archive"}, "1")
	if said, err := c.CombinedOutput(); c.ProcessState == nil || c.ProcessState.ExitCode() != 2 ||
		!strings.Contains(string(said), "cannot unpack") {
		t.Errorf("%v: %s", err, said)
	}
}
