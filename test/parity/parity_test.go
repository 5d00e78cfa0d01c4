package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestThePagesAreUpToDate(t *testing.T) {
	for _, p := range pages {
		want, err := p.render(root)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(root + "/docs/" + p.name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("docs/%s.md is not what docs/%s.txt says: run go generate ./test/parity", p.name, p.name)
		}
	}
}

func TestTheTableIsChecked(t *testing.T) {
	tree := &tree{tests: map[string]bool{"ipc.TestA": true},
		names: map[string]bool{"ipc": true, "ipc.Queue": true, "ipc.Queue.Put": true}}
	for _, c := range []struct{ text, want string }{
		{"Queue | `ipc.Queue` |  | ipc.TestA", ""},
		{"Queue.put | `ipc.Queue.Put` |  | ipc.TestA", ""},
		{"fork | - | threads do not survive it | -", ""},
		{"Queue | `ipc.Queue` |  | ipc.TestB", "no test ipc.TestB"},
		{"Queue | `ipc.Queue` |  | Test*", ""},
		{"Queue | `ipc.Queue` |  | TestB*", "no test TestB*"},
		{"Queue | `ipc.Queue` |  | ?TestB*", "no test ?TestB*"},
		{"Queue | `ipc.Queue.Get` |  | ipc.TestA", "no ipc.Queue.Get"},
		{"Queue | `ipc.Queue` | see `ipc.Nothing` | ipc.TestA", "no ipc.Nothing"},
		{"Queue | `ipc.Queue` |  | -", "no test"},
		{"fork | - |  | -", "neither"},
		{"fork | `ipc.Queue` | ipc.TestA", "columns"},
		{"fork | - | no | -\nfork | - | no | -", "twice"},
	} {
		_, err := pages[0].renderTable(c.text, tree)
		if err == nil && c.want != "" || err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// more are names that stand in no module which testdata/names.py looks at: methods of tensors,
// other packages, and the options of PyTorch's Hogwild example.
var more = strings.Fields(
	`Tensor.share_memory_ Tensor.is_shared Module.share_memory torch.from_file torch.frombuffer torch.manual_seed
	torch.set_num_threads torch.save torch.load DataParallel init_process_group Module.state_dict resource_tracker
	concurrent.futures.ProcessPoolExecutor ENV_VAR_PARALLEL_START default_collate_fn_map StatefulDataLoader.state_dict
	--batch-size --test-batch-size --epochs --lr --momentum --seed --log-interval --num-processes --cuda --mps --device --save_model
	--dry-run`)

// recorded returns the public names of Python's own modules, which testdata/names.py has written
// down.
func recorded(t *testing.T) (names []string) {
	text, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			names = append(names, strings.TrimSpace(line))
		}
	}
	return names
}

func TestNoNameIsLeftOut(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/parity.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if title, _, ok := strings.Cut(line, " | "); ok {
			for _, name := range namesIn(title) {
				known[name] = true
			}
		}
	}
	names := recorded(t)
	if len(names) < 350 {
		t.Fatalf("%d names are recorded", len(names))
	}
	for _, name := range append(names, more...) {
		if !known[name] {
			t.Errorf("%s is not in the table: give it a row, or a place in the title of one", name)
		}
	}
}

func TestTitlesHaveTheNamesOfTheirClasses(t *testing.T) {
	for title, want := range map[string]string{
		"Lock (acquire, release), RLock":    "Lock Lock.acquire Lock.release RLock",
		"pool.ThreadPool, Pool.map(func)":   "ThreadPool Pool.map Pool.map.func",
		"JoinableQueue (put; join) of all":  "JoinableQueue JoinableQueue.put JoinableQueue.join of all",
		"Tensor.share_memory_(), ListProxy": "Tensor.share_memory_ ListProxy",
	} {
		known := namesIn(title)
		for _, name := range strings.Fields(want) {
			if !slices.Contains(known, name) {
				t.Errorf("%s: %s is missing in %q", title, name, known)
			}
		}
	}
}

// Each test of a regression is in the row of its number.
func TestNoRegressionIsLeftOut(t *testing.T) {
	tree, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(root + "/docs/acceptance.md")
	if err != nil {
		t.Fatal(err)
	}
	all := tree.testsOf("TestRegression_S*")
	if len(all) < 40 {
		t.Fatalf("%d regressions", len(all))
	}
	for _, test := range all {
		if !bytes.Contains(page, []byte("`"+test+"`")) {
			t.Errorf("%s is not in docs/acceptance.md: give its number a row, and run go generate ./test/parity", test)
		}
	}
}
