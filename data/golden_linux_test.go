package data_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
)

var writeGolden = flag.Bool("golden.write", false, "write the states of this version")

// A goldenState is a state that a program of some version has saved, and the rest of its epoch.
type goldenState struct {
	Loader string
	State  json.RawMessage
	Rest   []int64
}

// goldenLoaders are the loaders of the states, by name. They do not change.
func goldenLoaders() map[string]*data.Loader {
	return map[string]*data.Loader{
		"in order":  data.NewLoader(upTo(20), data.Options{BatchSize: 3}),
		"shuffled":  data.NewLoader(upTo(20), data.Options{BatchSize: 3, Shuffle: true, Seed: 5}),
		"batches":   data.NewLoader(upTo(20), data.Options{Batches: data.Batched(data.Sequential(20), 4, false)}),
		"stream":    data.NewStreamLoader(few{}, data.Options{BatchSize: 2}),
		"two ranks": data.NewLoader(upTo(20), data.Options{BatchSize: 3, Shuffle: true, Seed: 5, Rank: 1, World: 2}),
	}
}

// testdata/golden has a file for each version of the state: what a program saved once is resumed by
// every later version, in the same order.
func TestGolden_StatesOfEveryVersionAreResumed(t *testing.T) {
	newest := filepath.Join("testdata", "golden", "1.json")
	if *writeGolden {
		writeStates(t, newest)
	}
	all, err := filepath.Glob("testdata/golden/*.json")
	if err != nil || len(all) == 0 {
		t.Fatalf("no states: %v", err)
	}
	for _, file := range all {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var states []goldenState
		if err := json.Unmarshal(b, &states); err != nil || len(states) == 0 {
			t.Fatalf("%s: %d states, %v", file, len(states), err)
		}
		for _, g := range states {
			l := goldenLoaders()[g.Loader]
			var s data.State
			if err := json.Unmarshal(g.State, &s); err != nil {
				t.Fatal(err)
			}
			if err := l.Resume(s); err != nil {
				t.Errorf("%s of %s: %v", g.Loader, file, err)
				continue
			}
			var got []int64
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, tensor.Data[int64](b[0])...)
			}
			if fmt.Sprint(got) != fmt.Sprint(g.Rest) || len(got) == 0 {
				t.Errorf("%s of %s goes on with %v, not %v", g.Loader, file, got, g.Rest)
			}
		}
	}
}

// writeStates takes the state of each loader after its second batch.
func writeStates(t *testing.T, file string) {
	t.Helper()
	var states []goldenState
	for _, name := range []string{"in order", "shuffled", "batches", "stream", "two ranks"} {
		l, g, n := goldenLoaders()[name], goldenState{Loader: name}, 0
		for b, err := range l.Batches(t.Context()) {
			if n++; n > 2 {
				g.Rest = append(g.Rest, tensor.Data[int64](b[0])...)
			}
			if err == nil && n == 2 {
				g.State, err = json.Marshal(l.State())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		states = append(states, g)
	}
	b, err := json.MarshalIndent(states, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o777)
	}
	if err == nil {
		err = os.WriteFile(file, append(b, '\n'), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}
