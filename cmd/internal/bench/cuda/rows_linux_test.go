package cuda_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/bench"
	cudabench "github.com/shoal-mp/shoal/cmd/internal/bench/cuda"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/shoaltest"
)

func TestMain(m *testing.M) { shoaltest.TestMain(last{m}) }

// last ends with the tests: a process keeps its driver, so what is left behind is not looked for.
type last struct{ *testing.M }

func (m last) Run() int {
	os.Exit(m.M.Run())
	return 0
}

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		target bench.Target
		result bench.Result
		text   string
		met    bool
	}{
		{cudabench.HandedOver, bench.Result{Value: 20_000}, "≤ 20 µs", true},
		{cudabench.HandedOver, bench.Result{Value: 20_001}, "≤ 20 µs", false},
		{cudabench.HandedOver, bench.Result{Value: 20_000, Peer: "torch", RatioToPeer: 20},
			"≤ 20 µs, ≥ 20 × peer", true},
		{cudabench.HandedOver, bench.Result{Value: 20_000, Peer: "torch", RatioToPeer: 19.9},
			"≤ 20 µs, ≥ 20 × peer", false},
		{cudabench.HandedOver, bench.Result{Value: 20_001, Peer: "torch", RatioToPeer: 20},
			"≤ 20 µs, ≥ 20 × peer", false},
		{cudabench.OfDriver, bench.Result{RatioToFloor: 1.11}, "≤ 1.11 × floor", true},
		{cudabench.OfDriver, bench.Result{RatioToFloor: 1.12}, "≤ 1.11 × floor", false},
		{cudabench.OfBandwidth, bench.Result{RatioToFloor: 1.17}, "≤ 1.18 × floor", true},
		{cudabench.OfBandwidth, bench.Result{RatioToFloor: 1.19}, "≤ 1.18 × floor", false},
		{cudabench.AsTorch, bench.Result{Peer: "torch", RatioToPeer: 0.97}, "≥ 0.97 × peer", true},
		{cudabench.AsTorch, bench.Result{Peer: "torch", RatioToPeer: 0.96}, "≥ 0.97 × peer", false},
		{cudabench.AsTorch, bench.Result{}, "", false},
		{cudabench.Nothing, bench.Result{Value: 32<<20 - 1}, "< 32 MiB, the driver's", true},
		{cudabench.Nothing, bench.Result{Value: 32 << 20}, "< 32 MiB, the driver's", false},
	} {
		if text, met := c.target(c.result, nil); text != c.text || met != c.met {
			t.Errorf("%+v: %q, %v; want %q, %v", c.result, text, met, c.text, c.met)
		}
	}
}

// Every row runs on a simulated device, and is done: what it says there means nothing but that
// nobody who was killed left anything.
func TestEveryRowRuns(t *testing.T) {
	devices, err := sim.Create(1, 4<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer devices.Close()
	defer cuda.Close()
	t.Setenv(cuda.SimulateKey, strings.Join(devices.Paths(), ","))
	seen := quickly(t, cudabench.Suite)
	if seen["handoff_1GiB"].Value <= 0 || seen["handoff_1GiB_written"].Value <= 0 ||
		seen["copy_1GiB"].Value <= 0 || seen["copy_1GiB"].Floor <= 0 || seen["add_1GiB"].Value <= 0 ||
		seen["matmul_4096_float32"].Value <= 0 || seen["matmul_4096_bfloat16"].Value <= 0 {
		t.Errorf("%+v", seen)
	}
	if r, ok := seen["left_by_200_killed"]; !ok || r.Value >= 32<<20 {
		t.Errorf("killed processes left %v bytes", r.Value)
	}
	script, err := os.ReadFile("../peers/torch_cuda_ops.py")
	if err != nil {
		t.Fatal(err)
	}
	_, names, _ := strings.Cut(string(script), `NAMES = """`)
	names, _, _ = strings.Cut(names, `"""`)
	peers := strings.Fields(names)
	seen = quickly(t, cudabench.Ops)
	for _, name := range peers {
		if seen[name].Value <= 0 {
			t.Errorf("%s: %+v", name, seen[name])
		}
	}
	if len(seen) != len(peers) {
		t.Errorf("%d rows, of which the peer has %d", len(seen), len(peers))
	}
}

// quickly runs a suite and returns its rows.
func quickly(t *testing.T, s bench.Suite) map[string]bench.Result {
	t.Helper()
	var out, log bytes.Buffer
	err := bench.Run(t.Context(), bench.Options{Suites: []string{s.Name}, More: []bench.Suite{s},
		Quick: true, JSON: true, Out: &out, Log: &log})
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	seen := map[string]bench.Result{}
	for d := json.NewDecoder(&out); d.More(); {
		var r bench.Result
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		seen[r.Name] = r
	}
	return seen
}

// Where the other process does not have the device, as when this one has it for itself, the rows
// end with what it says.
func TestTheOtherProcessHasAnotherDevice(t *testing.T) {
	defer cuda.Close()
	for range 2 { // the first is this process's, which it keeps, and the second the other one's
		devices, err := sim.Create(1, 4<<30)
		if err != nil {
			t.Fatal(err)
		}
		defer devices.Close()
		t.Setenv(cuda.SimulateKey, strings.Join(devices.Paths(), ","))
		if cuda.Available() != nil {
			t.Fatal(cuda.Available())
		}
	}
	err := bench.Run(t.Context(), bench.Options{Suites: []string{"cuda"},
		More: []bench.Suite{cudabench.Suite}, Quick: true, JSON: true, Out: io.Discard, Log: io.Discard})
	if !errors.Is(err, cuda.ErrDevice) {
		t.Errorf("%v", err)
	}
}
