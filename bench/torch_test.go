package bench_test

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/bench"
)

// TestRowsOfPyTorch needs a real one: both sides of these rows are its.
func TestRowsOfPyTorch(t *testing.T) {
	if err := exec.Command("python3", "-c", "import torch").Run(); err != nil {
		t.Skip("python3 has no PyTorch")
	}
	want := []string{}
	for _, size := range []string{"1KiB", "1MiB", "64MiB"} {
		for _, suffix := range []string{"", "_fs"} {
			for _, row := range []string{"to", "from", "go_share", "rtt", "kept"} {
				want = append(want, "torchpeer_"+size+"_"+row+suffix)
			}
		}
	}
	want = append(want, "torchloader_light")
	var got []string
	for _, r := range run(t, bench.Options{Suites: []string{"torchpeer", "torchloader_light"}}) {
		got = append(got, r.Name)
		if r.Value <= 0 {
			t.Errorf("row %+v", r)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows\n%v, want\n%v", got, want)
	}
}
