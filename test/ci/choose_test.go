package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// read parses the table of this repository.
func readTable(t *testing.T) *table {
	t.Helper()
	text, err := os.ReadFile("../../" + tablePath)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := parseTable(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// TestTable_AlwaysRunsTheChecksOfEveryLanding lists the steps that no landing may leave out.
func TestTable_AlwaysRunsTheChecksOfEveryLanding(t *testing.T) {
	var always []string
	sizes := make(map[int]int)
	for _, s := range readTable(t).steps {
		if s.group == groupAlways {
			always = append(always, s.name)
		}
		sizes[s.group]++
	}
	want := []string{
		"test", "race", "lint", "generated", "crashpoints", "interleavings", "interop-short", "docs", "modules",
	}
	if !slices.Equal(always, want) {
		t.Errorf("always: got %v, want %v", always, want)
	}
	for g := 1; g <= groups; g++ {
		if sizes[g] < 3 {
			t.Errorf("group %d has %d steps", g, sizes[g])
		}
	}
}

func TestTable_TheFirstStepIsTheTestCommandOfTheReadme(t *testing.T) {
	first := readTable(t).steps[0]
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	command := strings.TrimSpace(first.script)
	if !strings.Contains(string(readme), "\n"+command+" ") || len(first.needs) > 0 || first.lane != laneMain {
		t.Errorf("got %+v, want the README's test command", first)
	}
}

func TestTable_RotatingStepsHaveInputs(t *testing.T) {
	for _, s := range readTable(t).steps {
		if race := strings.HasPrefix(s.name, "race-"); s.group > 0 && !race && !s.long && len(s.inputs) == 0 {
			t.Errorf("step %s: want inputs", s.name)
		}
	}
}

func TestParseTable_RefusesEntriesThatWouldNotRun(t *testing.T) {
	const good = "step a\n\tgroup always\n\trun true\n"
	for text, want := range map[string]string{
		"step b\n\trun true\n":            "step b has no group",
		"step b\n\tgroup 4\n\trun true\n": "want always, install or a number from 1 to 3",
		"step b\n\tgroup 1\n":             "step b has no command",
		good:                              "step a is listed twice",
		"step b\n\tgroup 1\n\trun true\n\tlane up\n":       `unknown lane "up"`,
		"step b\n\tgroup 1\n\trun true\n\tlong no\n":       `long "no": want yes`,
		"step b\n\tgroup always\n\trun true\n\tlong yes\n": "step b is long",
		"step b\n\tgroup 1\n\trun true\n\tneeds c\n":       `step "c", which is not listed`,
		"step b\n\tgroup 1\n\trun true\n\tneeds b\n":       "must be listed before it",
		"step b\n\tgroup 1\n\trun true\n\tcovers c\n":      `step "c", which is not listed`,
		"step b\n\tgroup 1\n\trun true\n\tinputs x\n":      `unknown field "inputs"`,
		"step b\n\tgroup 1\n\trun true\n\tlimit long\n":    "invalid duration",
		"step b c\n": "want a comment",
		"step b\n\tgroup 1\n\trun true\n\tlane side main\n": "has 2 values, want 1",
	} {
		if _, err := parseTable(good + text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := parseTable(good); err != nil {
		t.Error(err)
	}
}

// A fakeHistory has commits by name. HEAD descends from each of them.
type fakeHistory struct {
	marks  map[string]mark
	tables map[string]string
	files  map[string]string // the changed file, by a pathspec that it matches
}

func (h *fakeHistory) mark(commit string) (mark, bool) { m, ok := h.marks[commit]; return m, ok }

func (h *fakeHistory) contains(commit string) bool { _, ok := h.tables[commit]; return ok }

func (h *fakeHistory) table(commit string) string { return h.tables[commit] }

func (h *fakeHistory) changed(_ string, pathspecs []string) (string, error) {
	for _, p := range pathspecs {
		if file := h.files[p]; file != "" {
			return file, nil
		}
	}
	return "", nil
}

const example = `
step test
	group always
	run make test
step tool
	group install
	run install
step short
	group always
	run short
step one
	group 1
	in one
	run one
step two
	group 2
	in two
	run two
	needs tool
step three
	group 3
	in three
	run three
	covers short
`

// landing returns the steps that run at a landing of a group after one with the same table.
func landing(t *testing.T, h *fakeHistory, group int) []string {
	t.Helper()
	tab, err := parseTable(example)
	if err != nil {
		t.Fatal(err)
	}
	h.marks = map[string]mark{"HEAD": {"previous", group}}
	if h.tables == nil {
		h.tables = map[string]string{"previous": example}
	}
	reasons, err := tab.choose(h, turnOf(h))
	if err != nil {
		t.Fatal(err)
	}
	again, err := tab.choose(h, turnOf(h))
	if err != nil || !maps.Equal(reasons, again) {
		t.Errorf("a rerun: got %v, %v, want %v", again, err, reasons)
	}
	return slices.Sorted(maps.Keys(reasons))
}

func TestChoose_GroupsTakeTurns(t *testing.T) {
	for group, want := range map[int][]string{
		1: {"one", "short", "test"},
		2: {"short", "test", "tool", "two"},
		3: {"test", "three"},
	} {
		if got := landing(t, new(fakeHistory), group); !slices.Equal(got, want) {
			t.Errorf("group %d: got %v, want %v", group, got, want)
		}
	}
}

func TestChoose_ThreeLandingsRunEverything(t *testing.T) {
	tab := readTable(t)
	text, err := os.ReadFile("../../" + tablePath)
	if err != nil {
		t.Fatal(err)
	}
	for first := 1; first <= groups; first++ {
		ran := make(map[string]bool)
		group := first
		for range groups {
			h := &fakeHistory{
				marks:  map[string]mark{"HEAD": {"previous", group}},
				tables: map[string]string{"previous": string(text)},
			}
			reasons, err := tab.choose(h, turnOf(h))
			if err != nil {
				t.Fatal(err)
			}
			for name := range reasons {
				ran[name] = true
			}
			group = next(group)
		}
		for _, s := range tab.steps {
			if !ran[s.name] {
				t.Errorf("three landings from group %d on leave out %s", first, s.name)
			}
		}
	}
}

func TestChoose_AChangedInputSelectsItsStep(t *testing.T) {
	h := &fakeHistory{files: map[string]string{"two": "two/file.go"}}
	if got, want := landing(t, h, 1), []string{"one", "short", "test", "tool", "two"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestChoose_AChangedEntrySelectsItsStep would otherwise miss a step that changes its group.
func TestChoose_AChangedEntrySelectsItsStep(t *testing.T) {
	h := &fakeHistory{tables: map[string]string{"previous": strings.Replace(example, "\tgroup 3", "\tgroup 2", 1)}}
	if got, want := landing(t, h, 1), []string{"one", "test", "three"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	h = &fakeHistory{tables: map[string]string{"previous": ""}} // which has no table
	if got, want := landing(t, h, 1), []string{"one", "test", "three", "tool", "two"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestChoose_LongSteps: a commit without a mark does not select them.
func TestChoose_LongSteps(t *testing.T) {
	text := example + "\nstep long\n\tgroup 2\n\tlong yes\n\tin x\n\trun true\n"
	tab, err := parseTable(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		turn turn
		want string
	}{
		{turn{since: "previous", group: 1}, ""}, {turn{since: "previous", group: 2}, "turn of group 2"},
		{turn{why: "no mark"}, ""}, {turn{why: "CI_ALL=1", all: true}, "everything"},
	} {
		h := &fakeHistory{tables: map[string]string{"previous": text}}
		reasons, err := tab.choose(h, c.turn)
		if err != nil || reasons["long"] != c.want {
			t.Errorf("%+v: got %q, %v, want %q", c.turn, reasons["long"], err, c.want)
		}
	}
}

func TestTurnOf_EverythingRunsUnlessThePreviousLandingIsKnown(t *testing.T) {
	tables := map[string]string{"previous": example}
	for name, h := range map[string]*fakeHistory{
		"no mark":      {tables: tables},
		"shallow":      {marks: map[string]mark{"HEAD": {"previous", 1}}},
		"out of turn":  {tables: tables, marks: map[string]mark{"HEAD": {"previous", 1}, "previous": {"older", 2}}},
		"a turn again": {tables: tables, marks: map[string]mark{"HEAD": {"previous", 2}, "previous": {"older", 2}}},
	} {
		tab, err := parseTable(example)
		if err != nil {
			t.Fatal(err)
		}
		now := turnOf(h)
		reasons, err := tab.choose(h, now)
		if err != nil || !now.everything() || now.why == "" || len(reasons) != len(tab.steps)-1 { // short is covered
			t.Errorf("%s: got %+v, %v, %v", name, now, reasons, err)
		}
	}
	h := &fakeHistory{tables: tables, marks: map[string]mark{"HEAD": {"previous", 1}, "previous": {"older", 3}}}
	if now := turnOf(h); now.everything() || now.group != 1 || now.since != "previous" {
		t.Errorf("in turn: got %+v", now)
	}
}
