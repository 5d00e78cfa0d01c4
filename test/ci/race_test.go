package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRaceSet_DividesThePackages(t *testing.T) {
	t.Setenv("PACKAGES", "./...")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := packages(root)
	if err != nil || len(all) < 50 {
		t.Fatalf("%d packages, %v", len(all), err)
	}
	tab := readTable(t)
	dirs := make(map[string]bool)
	skipped := 0
	for _, p := range all {
		dirs[p.Dir] = true
		if tab.third(p.Dir) == "skip" {
			skipped++
		}
	}
	for _, set := range []string{"core", "skip"} {
		for _, dir := range tab.race[set] {
			if !dirs[dir] {
				t.Errorf("the race set %s lists %s, which is no package", set, dir)
			}
		}
	}
	if skipped != len(tab.race["skip"]) {
		t.Errorf("%d packages are skipped, want those listed: %v", skipped, tab.race["skip"])
	}
	for name, changed := range map[string][]string{
		"all thirds":   nil,
		"a change":     {"ipc/tcp/conn.go", "README.md", "internal/arena/ring.go", "data/row/row.go"},
		"all packages": {"x"},
	} {
		seen := make(map[string]string)
		for _, set := range []string{"always", "1", "2", "3"} {
			for _, p := range tab.raceSet(set, all, changed) {
				if seen[p] != "" {
					t.Errorf("%s: %s is in %s and in %s", name, p, seen[p], set)
				}
				seen[p] = set
			}
		}
		for _, p := range all {
			if want := p.tested() && tab.third(p.Dir) != "skip"; want != (seen[p.ImportPath] != "") {
				t.Errorf("%s: %s is in %q", name, p.ImportPath, seen[p.ImportPath])
			}
		}
	}
}

func TestRaceSet_HasWhatChanged(t *testing.T) {
	all := []pkg{
		{ImportPath: "m", Dir: ".", TestGoFiles: []string{"a"}},
		{ImportPath: "m/low", Dir: "low", TestGoFiles: []string{"a"}},
		{ImportPath: "m/mid", Dir: "mid", Imports: []string{"m/low"}},
		{ImportPath: "m/high", Dir: "high", XTestGoFiles: []string{"a"}, XTestImports: []string{"m/mid"}},
		{ImportPath: "m/user", Dir: "user", TestGoFiles: []string{"a"}, TestImports: []string{"m/low"}},
		{ImportPath: "m/skip", Dir: "skip", TestGoFiles: []string{"a"}, Imports: []string{"m/low"}},
	}
	tab := &table{race: map[string][]string{"core": {"."}, "skip": {"skip"}, "1": {"high"}}}
	for changed, want := range map[string]string{
		"":                    "m",
		"low/low.go":          "m m/low m/user",
		"low/testdata/x/in":   "m m/low m/user",
		"mid/mid.go":          "m m/high",
		"user/user_test.go":   "m m/user",
		"skip/a.go":           "m",
		"elsewhere/README.md": "m",
	} {
		var files []string
		if changed != "" {
			files = []string{changed}
		}
		if got := strings.Join(tab.raceSet("always", all, files), " "); got != want {
			t.Errorf("%q: got %s, want %s", changed, got, want)
		}
	}
	if got := tab.raceSet("1", all, nil); !slices.Equal(got, []string{"m/high"}) {
		t.Errorf("the first third: got %v", got)
	}
	for range maxDependents { // low has too many dependents now
		all = append(all, pkg{ImportPath: "m/" + string(rune('a'+len(all))), Imports: []string{"m/low"}})
	}
	if got := tab.raceSet("always", all, []string{"low/low.go"}); !slices.Equal(got, []string{"m", "m/low"}) {
		t.Errorf("many dependents: got %v", got)
	}
}
