package torch

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/test/testutil"
)

var readmeRuns = flag.Int("torch.readme", 8, "how often TestSpawn_TheProgramOfTheReadmeRuns runs the program of "+
	"README.md")

// TestSpawn_TheProgramOfTheReadmeRuns runs the program of README.md as a reader types it, several
// at once, and counts failures.
func TestSpawn_TheProgramOfTheReadmeRuns(t *testing.T) {
	pythons := torchPythons()
	if len(pythons) == 0 {
		t.Skip("interoperability was not tested: python3 has no PyTorch")
	}
	dir := readmeProgram(t)
	var failures []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	runs := make(chan peerPython)
	for range 3 { // that loads a machine with two processors
		wg.Go(func() {
			for py := range runs {
				out, err := runReadme(t, dir, py)
				if want := "the sum of 3 and so on is 3072\n"; err == nil && out != want {
					err = fmt.Errorf("not %q", want)
				}
				if err != nil {
					mu.Lock()
					failures = append(failures, fmt.Sprintf("%s: %v: %s", py.version, err, out))
					mu.Unlock()
				}
			}
		})
	}
	for i := range *readmeRuns {
		runs <- pythons[i%len(pythons)]
	}
	close(runs)
	wg.Wait()
	for _, f := range failures {
		t.Error(f)
	}
	line, err := json.Marshal(struct {
		Runs     int `json:"readme_runs"`
		Failures int `json:"readme_failures"`
	}{*readmeRuns, len(failures)})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
}

// readmeProgram makes a directory with the program. README.md must have its text.
func readmeProgram(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	readme := string(testutil.Value(os.ReadFile("../README.md"))(t))
	source := string(testutil.Value(os.ReadFile("../examples/torchpeer/main.go"))(t))
	worker := string(testutil.Value(os.ReadFile("../examples/torchpeer/worker.py"))(t))
	_, function, ok := strings.Cut(source, "\nfunc run(")
	if !ok || !strings.Contains(readme, "```go\nfunc run("+function+"```\n") {
		t.Error("README.md does not show the function run of examples/torchpeer/main.go as it is")
	}
	_, shown, ok := strings.Cut(readme, "```python\n# worker.py\n")
	shown, _, end := strings.Cut(shown, "```\n")
	if !ok || !end || shown != worker {
		t.Errorf("README.md shows another worker.py than examples/torchpeer has: %s", shown)
	}
	if err := os.WriteFile(filepath.Join(dir, "worker.py"), []byte(shown), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "torchpeer"),
		"../examples/torchpeer").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, py := range torchPythons() { // the program starts the python3 of its PATH
		bin := filepath.Join(dir, fmt.Sprint("bin", i))
		if err := os.Mkdir(bin, 0o700); err != nil {
			t.Fatal(err)
		}
		script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", py.path)
		if err := os.WriteFile(filepath.Join(bin, "python3"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func runReadme(t *testing.T, dir string, py peerPython) (string, error) {
	at := 0
	for i, other := range torchPythons() {
		if other == py {
			at = i
		}
	}
	cmd := exec.CommandContext(testContext(t), "./torchpeer")
	cmd.Dir = dir
	cmd.Env = append(pythonEnv(), fmt.Sprintf("PATH=%s/bin%d:%s", dir, at, os.Getenv("PATH")))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
