package huggingface_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/torch"

	_ "github.com/shoal-mp/shoal/torch/huggingface"
)

func TestMain(m *testing.M) {
	torch.Child{}.Main() // returns, unless a DataLoader has started this binary as a worker
	os.Exit(m.Run())
}

// refusals maps comparisons of testdata/huggingface.py to the messages with which Go leaves a data
// set to Python.
var refusals = map[string]string{
	"numpy": "by Python: Python instead of Go loads the samples: datasets.Dataset: format numpy is not " +
		"supported by Go",
	"arguments":    "format arguments",
	"all columns":  "output_all_columns is not supported",
	"transform":    "format custom is not supported by Go",
	"missing":      "missing values are not supported by Go",
	"nested":       "Arrow type list<",
	"structs":      "Arrow type struct<",
	"unsigned":     "Arrow type uint64 is not supported by Go",
	"no columns":   "format has no columns",
	"fixed arrays": "by Python: ", // its pickle calls functions that Go does not know
}

// TestDataLoader_SamplesAreThoseOfPython loads data sets of the library datasets with Python
// workers and with Go workers, in each interpreter of SHOAL_TORCH_PYTHONS that has the library.
func TestDataLoader_SamplesAreThoseOfPython(t *testing.T) {
	pythons := filepath.SplitList(os.Getenv("SHOAL_TORCH_PYTHONS"))
	if len(pythons) == 0 {
		pythons = []string{"python3"}
	}
	tested := 0
	for _, python := range pythons {
		if exec.CommandContext(t.Context(), python, "-c", "import torch, datasets").Run() != nil {
			continue
		}
		tested++
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(python))), func(t *testing.T) { compare(t, python) })
	}
	if tested == 0 {
		t.Skip("no interpreter of SHOAL_TORCH_PYTHONS has torch and datasets; make interop installs one")
	}
}

func compare(t *testing.T, python string) {
	shared, err := filepath.Abs("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/huggingface.py", os.Args[0], t.TempDir())
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore",
		"PYTHONPATH="+shared)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	var differences map[string]string
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &differences); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	t.Log(differences["versions"])
	delete(differences, "versions")
	if len(differences) < 50 {
		t.Errorf("%d comparisons, want at least 50", len(differences))
	}
	for name, got := range differences {
		want, refused := refusals[name]
		if refused && !strings.Contains(got, want) || !refused && got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name := range refusals {
		if _, ok := differences[name]; !ok {
			t.Errorf("%s was not compared", name)
		}
	}
	if s := stderr.String(); strings.Contains(s, "Traceback") || strings.Contains(s, "leaked") {
		t.Errorf("Python complained:\n%s", s)
	}
}
