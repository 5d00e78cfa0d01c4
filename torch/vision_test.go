package torch

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"context"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/image"
)

// openPhotos is a data set of a program's own, which takes a transform from Python.
func openPhotos(_ context.Context, w Worker) (data.Dataset, error) {
	var args struct {
		Root      string         `torch:"root"`
		Transform image.Pipeline `torch:"transform"`
	}
	if err := w.Keywords(&args); err != nil {
		return nil, err
	}
	return datasets.NewImageFolder(args.Root, args.Transform)
}

// refusals are Go's messages about transforms and data sets that it does not make as Python does.
// Package vision tests the others.
var refusals = map[string]string{
	"unknown transform": "by Python: Python instead of Go loads the samples: transform transforms.GaussianBlur is " +
		"not supported by Go, which supports CenterCrop, ColorJitter,",
	"index":             "index 20 at position 1 of a Subset is out of range, its data set has 20 samples",
	"range":             "index 20 at position 20 of a Subset is out of range, its data set has 20 samples",
	"floats":            "indices of a Subset are float32 of shape [1], want integers",
	"sizes":             "data: shape does not match the data set",
	"missing file":      "gone.png: no such file or directory",
	"unknown attribute": `add a field tagged torch:"shuffle_buffer"`,
}

// TestChild_SamplesOfTorchvisionAreThoseOfPython loads data sets of torchvision's classes by Python
// and by Go.
func TestChild_SamplesOfTorchvisionAreThoseOfPython(t *testing.T) {
	with := slices.DeleteFunc(slices.Clone(torchPythons()), func(py peerPython) bool {
		return exec.Command(py.path, "-c", "import torchvision.transforms.v2, PIL").Run() != nil
	})
	each(t, with, "batches were not compared: no Python has torchvision with transforms.v2",
		func(t *testing.T, py peerPython) { compare(t, py, "vision", 60, refusals) })
}

// compare runs a script of testdata that loads data sets by Python and by Go. The script prints how
// the batches differ, by the names of at least least comparisons, or Go's refusal.
func compare(t *testing.T, py peerPython, script string, least int, refusals map[string]string) {
	cmd := exec.CommandContext(testContext(t), py.path, "testdata/"+script+".py", os.Args[0], t.TempDir())
	cmd.Env = pythonEnv()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	var out map[string]string
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &out); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	t.Log(out["versions"])
	delete(out, "versions")
	if len(out) < least {
		t.Errorf("only %d comparisons", len(out))
	}
	for name, got := range out {
		want, refused := refusals[name]
		if refused && !strings.Contains(got, want) || !refused && got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name := range refusals {
		if _, ok := out[name]; !ok {
			t.Errorf("%s was not tried", name)
		}
	}
	if s := stderr.String(); slices.ContainsFunc([]string{"Traceback", "leaked"},
		func(bad string) bool { return strings.Contains(s, bad) }) {
		t.Errorf("PyTorch complained:\n%s", s)
	}
}
