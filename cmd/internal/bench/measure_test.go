package bench_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/bench"
)

// series is a probe that returns its values one after the other, the first for the warm-up, and
// writes its name into a log.
func series(log *[]string, name string, values ...float64) *bench.Probe {
	return &bench.Probe{Measure: func(context.Context) (float64, error) {
		*log = append(*log, name)
		v := values[0]
		values = values[1:]
		return v, nil
	}}
}

func measure(t *testing.T, rounds int, cases ...bench.Case) (rows []bench.Result) {
	t.Helper()
	err := bench.Measure(t.Context(), rounds,
		func(r bench.Result) error { rows = append(rows, r); return nil }, cases...)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestARowIsMeasuredAndPrintedBeforeTheNext(t *testing.T) {
	var log []string
	floor := series(&log, "floor", 999, 10, 10, 999, 10, 10)
	var rows []bench.Result
	err := bench.Measure(t.Context(), 2,
		func(r bench.Result) error {
			rows, log = append(rows, r), append(log, "row "+r.Name)
			return nil
		},
		bench.Case{Name: "a", Unit: bench.Nanoseconds, Ours: series(&log, "a", 999, 20, 40), Floor: floor},
		bench.Case{Name: "b", Unit: bench.Nanoseconds, Ours: series(&log, "b", 999, 50, 50), Floor: floor},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "floor", "a", "floor", "a", "floor", "row a",
		"b", "floor", "b", "floor", "b", "floor", "row b"}
	if !slices.Equal(log, want) {
		t.Errorf("measured %v, want %v: of each row one warm-up, then round by round with its floor", log, want)
	}
	if a := rows[0]; a.Value != 30 || a.Floor != 10 || a.RatioToFloor != 3 {
		t.Errorf("row a is %+v", a)
	}
	if b := rows[1]; b.Value != 50 || b.RatioToFloor != 5 || b.Suite != "test" {
		t.Errorf("row b is %+v", b)
	}
}

// spreads is a case with a target whose probe returns a warm-up and ten values for each spread,
// around 100.
func spreads(spreads ...float64) bench.Case {
	var log []string
	var values []float64
	for i, spread := range spreads {
		values = append(values, 999)
		for k := range 11 {
			values = append(values, float64(100+i)+spread*100*float64(k-5)/8)
		}
	}
	return bench.Case{Name: "a", Unit: bench.Nanoseconds, Ours: series(&log, "a", values...),
		Target: bench.AtMost(1000, "1 µs")}
}

func TestMeasure_LooksForAQuietMinute(t *testing.T) {
	for _, c := range []struct {
		spreads []float64
		value   float64 // which attempt counts
	}{
		{[]float64{0.2}, 100},
		{[]float64{0.5, 0.2}, 101},
		{[]float64{0.5, 0.4, 0.3}, 102},
		{[]float64{0.5, 0.4, 0.6}, 101}, // the fourth is not tried
	} {
		if r := measure(t, 11, spreads(c.spreads...))[0]; r.Value != c.value {
			t.Errorf("of spreads %v the one of value %v was taken, want %v", c.spreads, r.Value, c.value)
		}
	}
}

func TestProbeThatTakesLongRunsOnce(t *testing.T) {
	var log []string
	p := series(&log, "long", 7)
	p.Once = true
	rows := measure(t, 3, bench.Case{Name: "long", Unit: bench.PerSecond, Ours: p})
	if len(log) != 1 || rows[0].Value != 7 {
		t.Errorf("ran %d times, row %+v", len(log), rows[0])
	}
}

func TestRateIsBetterWhenHigher(t *testing.T) {
	var log []string
	rows := measure(t, 1, bench.Case{
		Name: "rate", Unit: bench.PerSecond, Ours: series(&log, "", 0, 5e6), Floor: series(&log, "", 0, 20e6),
	})
	r := rows[0]
	r.Against(bench.NewSide("slow", 1e4), bench.NewSide("fast", 5e4))
	if r.RatioToFloor != 4 || r.Peer != "fast" || r.PeerValue != 5e4 || r.RatioToPeer != 100 {
		t.Errorf("row %+v", r)
	}
}

func TestPeerCountsByItsBestVariant(t *testing.T) {
	for _, order := range [][]bench.Sides{
		{bench.NewSide("fd", 500, 490, 510), bench.NewSide("fs", 100, 120, 90)},
		{bench.NewSide("fs", 100, 120, 90), bench.NewSide("fd", 500, 490, 510)},
		{bench.NewSide("none"), bench.NewSide("fs", 100)},
	} {
		r := bench.Result{Unit: bench.Nanoseconds, Value: 2}
		r.Against(order...)
		if r.Peer != "fs" || r.PeerValue != 100 || r.RatioToPeer != 50 {
			t.Errorf("row %+v", r)
		}
	}
}

func TestFailureNamesItsRow(t *testing.T) {
	broken := errors.New("broken")
	p := &bench.Probe{Measure: func(context.Context) (float64, error) { return 0, broken }}
	err := bench.Measure(t.Context(), 1, func(bench.Result) error { return nil }, bench.Case{Name: "a", Ours: p})
	if !errors.Is(err, broken) || err.Error() != "measure a: broken" {
		t.Errorf("error %v", err)
	}
}

func TestTargets(t *testing.T) {
	before := []bench.Result{{Name: "flat", Value: 100}}
	for _, c := range []struct {
		name   string
		target bench.Target
		r      bench.Result
		text   string
		met    bool
	}{
		{"at the floor's limit", bench.OverFloor(3.5), bench.Result{RatioToFloor: 3.5}, "≤ 3.5 × floor", true},
		{"over it", bench.OverFloor(3.5), bench.Result{RatioToFloor: 3.51}, "≤ 3.5 × floor", false},
		{"near", bench.ByDistance(bench.OverFloor(3), bench.OverFloor(2)),
			bench.Result{Floor: 110, RatioToFloor: 2.5}, "≤ 3 × floor", true},
		{"far", bench.ByDistance(bench.OverFloor(3), bench.OverFloor(2)),
			bench.Result{Floor: 480, RatioToFloor: 2.5}, "≤ 2 × floor", false},
		{"cost", bench.AtMost(10, "ten"), bench.Result{Value: 11}, "≤ ten", false},
		{"rate", bench.AtLeast(10, "ten"), bench.Result{Value: 11}, "≥ ten", true},
		{"besides", bench.BesidesFloor(5, "five"), bench.Result{Value: 11, Floor: 6}, "≤ floor + five", true},
		{"flat", bench.AsFlatAs("flat", 1.2), bench.Result{Value: 119}, "≤ 1.2 × flat", true},
		{"not flat", bench.AsFlatAs("flat", 1.2), bench.Result{Value: 121}, "≤ 1.2 × flat", false},
		{"as good as the peer", bench.TimesPeer(2), bench.Result{Peer: "torch", RatioToPeer: 2}, "≥ 2 × peer", true},
		{"worse", bench.TimesPeer(2), bench.Result{Peer: "torch", RatioToPeer: 1.9}, "≥ 2 × peer", false},
		{"without a peer", bench.TimesPeer(2), bench.Result{}, "", true},
		{"both", bench.Both(bench.OverFloor(2), bench.TimesPeer(2)),
			bench.Result{RatioToFloor: 1, Peer: "torch", RatioToPeer: 1}, "≤ 2 × floor, ≥ 2 × peer", false},
		{"one of both", bench.Both(bench.OverFloor(2), bench.TimesPeer(2)), bench.Result{RatioToFloor: 1},
			"≤ 2 × floor", true},
		{"without the other row", bench.AsFlatAs("other", 1.2), bench.Result{Value: 1}, "≤ 1.2 × other", false},
	} {
		if text, met := c.target(c.r, before); text != c.text || met != c.met {
			t.Errorf("%s: %q %v, want %q %v", c.name, text, met, c.text, c.met)
		}
	}
}

// A ratio to a peer whose samples lie far apart says as little as one of samples of ours.
func TestMeasure_APeersSpreadMakesARowNoisy(t *testing.T) {
	var log []string
	for _, c := range []struct {
		peer  []float64
		noisy bool
	}{
		{[]float64{999, 100, 101, 102}, false},
		{[]float64{999, 100, 150, 200, 999, 100, 150, 200, 999, 100, 150, 200}, true},
	} {
		ours := slices.Repeat([]float64{999, 100, 100, 100}, 3)
		r := measure(t, 3, bench.Case{Name: "a", Unit: bench.Nanoseconds, Ours: series(&log, "a", ours...),
			Rival:  &bench.Rival{Name: "rival", Probe: series(&log, "rival", c.peer...)},
			Target: bench.TimesPeer(1)})[0]
		if r.Noisy != c.noisy || r.Spread != 0 || r.PeerSpread == 0 {
			t.Errorf("peer's samples %v: row %+v, want noisy %v", c.peer, r, c.noisy)
		}
	}
}

func TestOpsEndsWithTheMedianOfItsRatios(t *testing.T) {
	rows := []bench.Result{{Name: "a", RatioToPeer: 2}, {Name: "b", RatioToPeer: 1}, {Name: "c", RatioToPeer: 0.5},
		{Name: "without a peer"}}
	if r := bench.MedianRow(rows); r.Name != "op_median" || r.Value != 1 || !r.Met {
		t.Errorf("median row %+v", r)
	}
	if r := bench.MedianRow(rows[2:]); r.Value != 2 || r.Met {
		t.Errorf("median row %+v", r)
	}
	dropped := bench.Result{Name: "op_dropped_result", RatioToPeer: 0.5}
	if r := bench.MedianRow(append(rows[:3:3], dropped)); r.Value != 1.5 ||
		!strings.Contains(r.Target, "dropped result 2.00") {
		t.Errorf("median row %+v, want the ratio of dropped results beside the median", r)
	}
	if r := bench.MedianRow(rows[3:]); r.Name != "" {
		t.Errorf("without a peer there is a row %+v", r)
	}
}

func TestGroupIsSkippedWithANoteIfItsLibraryIsMissing(t *testing.T) {
	for _, c := range []struct {
		library string
		rows    int
		notes   []string
	}{
		{"", 1, nil},
		{"here", 1, nil},
		{"absent", 0, []string{"without absent: not installed"}},
	} {
		rows, notes := 0, []string(nil)
		err := bench.RunNeeding(t.Context(), c.library, map[string]string{"absent": "not installed"},
			func(bench.Result) error { rows++; return nil }, func(note string) { notes = append(notes, note) })
		if err != nil || rows != c.rows || !slices.Equal(notes, c.notes) {
			t.Errorf("library %q: %d rows, notes %q, %v, want %d rows, notes %q", c.library, rows, notes, err,
				c.rows, c.notes)
		}
	}
}
