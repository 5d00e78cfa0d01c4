package bench_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/bench"
)

var row = bench.Result{
	Suite: "core", Name: "a", Value: 300, Unit: bench.Nanoseconds, Spread: 0.1,
	Floor: 100, RatioToFloor: 3, Peer: "torch", PeerValue: 30_000, PeerSpread: 0.07, RatioToPeer: 100,
	Target: "≤ 2 × floor",
}

func TestJSONHasTheKeysThatApply(t *testing.T) {
	var out, log bytes.Buffer
	bare := bench.Result{Suite: "core", Name: "b", Value: 0, Unit: bench.PerSecond, Noisy: true}
	if err := bench.Write(&out, &log, true, row, bare); err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"floor", "name", "peer", "peer_spread", "peer_value", "ratio_to_floor", "ratio_to_peer", "spread", "suite",
			"unit", "value"},
		{"name", "noisy", "spread", "suite", "unit", "value"},
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, want[i]) {
			t.Errorf("keys %v, want %v", keys, want[i])
		}
	}
	if log.String() != "header\n" {
		t.Errorf("log %q, want the header", log.String())
	}
}

func TestTable_SaysWhatBecameOfATarget(t *testing.T) {
	var out, log bytes.Buffer
	met, unquiet := row, row
	met.Name, met.Met = "b", true
	unquiet.Name, unquiet.Met, unquiet.Spread = "c", true, 0.31
	unquiet.Noisy = true
	if err := bench.Write(&out, &log, false, row, met, unquiet); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 6 || lines[0] != "header" {
		t.Fatalf("table:\n%s", out.String())
	}
	a := lines[3]
	for i, want := range []string{"MISSED: ≤ 2 × floor", "met: ≤ 2 × floor", "noisy: ≤ 2 × floor"} {
		if !strings.HasSuffix(lines[3+i], "  "+want) {
			t.Errorf("no %q at the end of %q", want, lines[3+i])
		}
	}
	for _, want := range []string{"300 ns", "100 ns", "3.00", "30.0 µs", "10 %", "7 %"} {
		if !strings.Contains(a, want) {
			t.Errorf("no %q in %q", want, a)
		}
	}
	if log.Len() > 0 {
		t.Errorf("log %q", log.String())
	}
}
