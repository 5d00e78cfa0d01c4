package torch

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestChild_ServesAStatefulDataLoader stops and resumes loaders of torchdata at several batches,
// and compares the batches with Python's workers.
func TestChild_ServesAStatefulDataLoader(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		if exec.Command(py.path, "-c", "import torchdata.stateful_dataloader").Run() != nil {
			unable(t, "it has no torchdata with a StatefulDataLoader")
		}
		cmd := exec.CommandContext(testContext(t), py.path, "testdata/stateful.py", os.Args[0])
		cmd.Env = pythonEnv()
		var stderr strings.Builder
		cmd.Stderr = &stderr
		b, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr.String())
		}
		var out map[string]json.RawMessage
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		program, err := os.Readlink("/proc/self/exe")
		if want := `["` + program + `"]`; string(out["exe"]) != want || err != nil {
			t.Errorf("the workers run %s, want %s: %v", out["exe"], want, err)
		}
		delete(out, "exe")
		for name, want := range map[string]string{
			"map for 1": "or shoal.DataLoader", "map for 3": "num_workers=2, and this StatefulDataLoader has 3",
			"stream for 1": "num_workers=2, and this StatefulDataLoader has 1", "stream for 3": "or shoal.DataLoader",
			"fail": "sample seven is bad", "unknown": `data set \"nobody\" is not registered`,
		} {
			if !strings.Contains(string(out[name]), want) {
				t.Errorf("%s: %s, want an error with %q", name, out[name], want)
			}
			delete(out, name)
		}
		if len(out) != 11 {
			t.Errorf("%d kinds of loaders, want 11", len(out))
		}
		for name, got := range out {
			if string(got) != "[true]" && string(got) != "[true, true, true]" {
				t.Errorf("%s: %s", name, got)
			}
		}
		if strings.Contains(stderr.String(), "Traceback") || strings.Contains(stderr.String(), "leaked") {
			t.Errorf("PyTorch complained:\n%s", stderr.String())
		}
	})
}
