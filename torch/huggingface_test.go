package torch

import (
	"os/exec"
	"slices"
	"testing"
)

// arrowRefusals are Go's messages about the data sets of Hugging Face that it leaves to Python.
var arrowRefusals = map[string]string{
	"numpy":        "by Python: Python loads the samples, and not Go: datasets.Dataset: the format numpy is made by Python",
	"arguments":    "the arguments of its format",
	"all columns":  "output_all_columns mixes formats",
	"transform":    "the format custom is made by Python",
	"missing":      "values that are missing are made by Python",
	"nested":       "the Arrow type list<",
	"structs":      "the Arrow type struct<",
	"unsigned":     "the Arrow type uint64 is read by Python",
	"no columns":   "its format has no columns",
	"fixed arrays": "by Python: ", // its pickle calls functions that Go does not know
}

// TestChild_SamplesOfHuggingFaceAreThoseOfPython loads data sets of the library datasets by Python
// and by Go.
func TestChild_SamplesOfHuggingFaceAreThoseOfPython(t *testing.T) {
	with := slices.DeleteFunc(slices.Clone(torchPythons()), func(py peerPython) bool {
		return exec.Command(py.path, "-c", "import datasets").Run() != nil
	})
	each(t, with, "batches were not compared: no Python has datasets",
		func(t *testing.T, py peerPython) { compare(t, py, "huggingface", 50, arrowRefusals) })
}
