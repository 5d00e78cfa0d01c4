package hogwild_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
)

func TestResultCountsTheLastReportOfEachWorker(t *testing.T) {
	var r hogwild.Result
	earlier := half
	earlier.Total = 64
	r.Heard(2, 2, earlier, whole, half)
	if r.Samples != 960 || r.SamplesPerSecond != 480 || r.PeakBytes[0] != 2<<20 || r.PeakBytes[1] != 3<<20 {
		t.Errorf("%+v", r)
	}
}

func TestResultForProgramsIsOneLine(t *testing.T) {
	var out bytes.Buffer
	r := hogwild.Result{Dataset: "digits", Accuracy: 0.5, Failure: "two\nlines", LeakedBytes: 7}
	if err := r.Write(&out, true); err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("%v: %q", err, out.String())
	}
	for key, want := range map[string]any{"dataset": "digits", "accuracy": 0.5, "failure": "two\nlines",
		"leaked_bytes": 7.0} {
		if back[key] != want {
			t.Errorf("%s is %v, want %v", key, back[key], want)
		}
	}
	for _, key := range []string{"samples_per_s", "workers", "threads_per_worker", "test_loss",
		"leaked_blocks", "blocks_allocated_total"} {
		if _, ok := back[key]; !ok {
			t.Errorf("no %s", key)
		}
	}
}

func TestResultForPeopleEndsWithTheAccuracy(t *testing.T) {
	var out bytes.Buffer
	r := hogwild.Result{Tested: true, TestLoss: 0.0987, Correct: 9695, TestSize: 10000, Accuracy: 0.9695}
	if err := r.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	if want := "Test set: Average loss: 0.0987, Accuracy: 9695/10000 (96.95%)\n"; !strings.HasSuffix(
		out.String(), want) {
		t.Errorf("%s\nends without %s", out.String(), want)
	}
}

func TestResultOfADivergedTrainingIsStillJSON(t *testing.T) {
	for _, loss := range []float64{math.NaN(), math.Inf(1)} {
		var out bytes.Buffer
		r := hogwild.Result{Tested: true, TestLoss: hogwild.Number(loss)}
		if err := r.Write(&out, true); err != nil || !strings.Contains(out.String(), `"test_loss":null`) {
			t.Errorf("%v: %v: %s", loss, err, out.String())
		}
	}
}
