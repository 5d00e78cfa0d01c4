package top_test

import (
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/top"
)

// machine is a census of a machine that is busy.
func machine(busy float64) domains.Census {
	return domains.Census{Machine: domains.Machine{Utilisation: busy}}
}

func TestATrendIsTheMostOfEachTime(t *testing.T) {
	for _, c := range []struct {
		values []float64
		width  int
		ascii  bool
		want   string
	}{
		{nil, 4, false, "    "},
		{[]float64{0}, 4, false, "   ▁"},
		{[]float64{5}, 4, false, "   █"},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8}, top.Span, false, "▂▃▄▅▅▆▇█"},
		{[]float64{0, 7, 0}, top.Span, true, "_#_"},
		{[]float64{0, 1, 70}, top.Span, true, "_.#"},
		{[]float64{0, 7, 0}, 4, true, "   #"},
		{[]float64{1}, 0, true, ""},
	} {
		var h top.History
		for _, v := range c.values {
			h.Add(machine(v))
		}
		got := h.Trend("CPUs", c.width, len(c.values), c.ascii)
		if c.width == top.Span { // what came before is blank
			got = got[len(got)-len(c.want):]
		}
		if got != c.want {
			t.Errorf("%v in %d columns: %q, want %q", c.values, c.width, got, c.want)
		}
	}
}

func TestColumnsOfATrendStayWhatTheyWere(t *testing.T) {
	var h top.History
	for i := range 5 * top.Span {
		h.Add(machine(float64(i % 17)))
	}
	// Ten looks a column: within one, nothing moves.
	at := h.Trend("CPUs", 12, 5*top.Span-9, true)
	if later := h.Trend("CPUs", 12, 5*top.Span-5, true); later[:11] != at[:11] {
		t.Errorf("%q becomes %q", at, later)
	}
}

func TestSeriesOfWhatHasEndedAreForgotten(t *testing.T) {
	var h top.History
	for range top.Span {
		h.Add(census(stuck()))
	}
	if h.Series() < 10 {
		t.Fatalf("%d series", h.Series())
	}
	for range 2 * top.Span {
		h.Add(machine(1))
	}
	if n := h.Series(); n != 1 {
		t.Errorf("%d series are kept of a machine alone", n)
	}
}
