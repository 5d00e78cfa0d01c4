package model_test

import (
	"flag"
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

var moreKills = flag.Int("model.crashes", 0, "explore that many more kills in each model")

// limit bounds an exploration to about 1 GiB.
const limit = 25_000_000

// kills is how often participants are killed in one run of a model. The race detector makes an
// exploration ten times slower and has nothing to find in it, there is one goroutine: one kill less
// is enough to see that.
func kills(n int) int {
	if raceDetector {
		n--
	}
	return n + *moreKills
}

// holds fails the test if a violation was found or not everything was explored.
func holds(t *testing.T, r model.Result) {
	t.Helper()
	if r.Err != nil || !r.Complete {
		t.Fatal(r)
	}
	t.Log(r)
}

// fails fails the test if no violation was found: then the model cannot tell that the rule is
// needed.
func fails(t *testing.T, r model.Result) {
	t.Helper()
	if r.Err == nil {
		t.Fatalf("not found in %v", r)
	}
	t.Logf("found %q after %d steps, %d states", r.Err, len(r.Trace), r.States)
}
