package top_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/mattn/go-runewidth"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/top"
	"github.com/shoal-mp/shoal/internal/arena/observe"
)

var (
	sgr     = regexp.MustCompile("\x1b\\[[0-9;]*m")
	colours = regexp.MustCompile("\x1b\\[[0-9;]*3[0-7]m")
)

// plain is a frame without its styles.
func plain(lines []string) string { return sgr.ReplaceAllString(strings.Join(lines, "\n"), "") }

func isForeign(r rune) bool { return r > unicode.MaxASCII }

func rank(n int) *int { return &n }

// stuck is a program with two workers in a deadlock, a stopped one, and one of each thing.
func stuck() domains.Domain {
	waits := []domains.Wait{
		{PID: 101, For: "lock", Block: "block 5.1", Name: "b", Kind: "mutex", On: []int{102}, Need: 1},
		{PID: 102, For: "lock", Block: "block 4.1", Name: "a", Kind: "mutex", On: []int{101}, Need: 1},
		{PID: 103, For: "message", Block: "block 7.1", Kind: "queue", On: []int{100}, Need: 1, Others: true},
	}
	return domains.Domain{
		Address: "@shoal/0/100-af", Version: 1, Limit: 8 << 30, Committed: 3 << 30, Bytes: 2 << 30, Blocks: 12,
		InTransit: 3,
		Reaped:    1, AllocsPerSecond: 120, CopiedPerSecond: 4 << 20, Names: []string{"a", "b"},
		Processes: []domains.Process{
			{PID: 100, Name: "train", Holds: 1 << 30, Role: domains.Root, State: domains.Running, CPUs: 0.02,
				Threads: 7},
			{PID: 101, Name: "shard", Function: "shard", Rank: rank(2), Holds: 5 << 20, Parent: 100,
				Role:  domains.Worker,
				State: domains.Running, Threads: 8, GOMAXPROCS: 1, CPUs: 0.5},
			{PID: 102, Name: "shard", Function: "shard", Rank: rank(10), Holds: 7 << 20, Parent: 100,
				Role:  domains.Worker,
				State: domains.Running, Threads: 8, GOMAXPROCS: 1},
			{PID: 103, Name: "資料\x1b[31m読み込み", Holds: 64, Parent: 100, Role: domains.Child,
				State: domains.Stopped, CPUs: 3},
		},
		Queues: []domains.Queue{{QueueView: observe.QueueView{Block: "block 7.1", Label: "train.Batch", Capacity: 16,
			Depth: 3, Puts: 90,
			Gets: 87, Senders: observe.EndView{PIDs: []int{100}, InTransit: 1},
			Receivers: observe.EndView{PIDs: []int{103}, Waiting: []int{103}}},
			PutsPerSecond: 45, GetsPerSecond: 44}},
		QueuesLeft: 2,
		Locks: []observe.LockView{{Block: "block 4.1", Names: []string{"a"}, Kind: "mutex", Owner: 101,
			Waiting: []int{102},
			PIDs:    []int{101, 102}},
			{Block: "block 5.1", Names: []string{"b"}, Kind: "mutex", Owner: 102, Waiting: []int{101},
				PIDs: []int{101, 102}}},
		Waits: waits, Deadlocks: []domains.Deadlock{{Waits: waits[:2]}},
		Summary: observe.Summary{Largest: []observe.BlockView{
			{Block: "block 9.1", Kind: "block", Bytes: 1 << 30, PIDs: []int{100}, Age: 300, AgeKnown: true,
				Names: []string{"weights"},
				DType: "float32", Shape: "[16384 16384]"},
			{Block: "block 8.1", Kind: "block", Bytes: 5 << 20, PIDs: []int{101, 102}, InTransit: 1, Age: 3}}},
	}
}

func census(all ...domains.Domain) domains.Census {
	m := domains.Machine{Seconds: 1, Utilisation: 0.41, InvoluntaryPerSecond: 812}
	return domains.Census{Machine: m, Domains: all}
}

// many is a program with a number of workers.
func many(n int) domains.Domain {
	d := domains.Domain{Address: "@shoal/0/900-b0", Limit: 1 << 30}
	for i := range n {
		d.Processes = append(d.Processes, domains.Process{PID: 900 + i, Name: "many", Function: "many", Rank: rank(i),
			Role: domains.Worker, State: domains.Running, Holds: int64(n - i)})
	}
	return d
}

// press presses keys at a screen: the names in top.Keys in angle brackets, other characters as
// they are.
func press(t *testing.T, s top.Screen, keys string) (quit bool) {
	t.Helper()
	for keys != "" {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(keys, "<"), ">"); ok && keys[0] == '<' {
			k, ok := top.Keys[name]
			if !ok {
				t.Fatalf("no key %q", name)
			}
			quit, keys = s.PressKey(k) || quit, rest
			continue
		}
		quit, keys = s.PressKey(top.Key(keys[0])) || quit, keys[1:]
	}
	return quit
}

func TestAFrameFitsEveryTerminal(t *testing.T) {
	for name, c := range map[string]domains.Census{
		"nothing": census(), "one": census(stuck()),
		"three": census(stuck(), many(64), domains.Domain{Address: "@x", Error: "no answer"}),
	} {
		for _, keys := range []string{"", "2", "3", "4", "5", "?", "<enter>", "2<enter>", "3<enter>", "4<enter>",
			"5<enter>", "/sh",
			"/zzz<enter>", " ", "s", "<end>", "?<end>", "<enter><end>"} {
			for _, f := range []top.Face{{Colour: true}, {}, {ASCII: true}} {
				for _, width := range []int{1, 7, 40, 80, 200} {
					for _, height := range []int{1, 2, 3, 4, 5, 6, 8, 12, 24, 60} {
						s := top.NewScreen(f)
						s.See(c)
						s.Frame(width, height)
						press(t, s, keys)
						lines := s.Frame(width, height)
						what := fmt.Sprintf("%s, keys %q, %+v, %d by %d", name, keys, f, width, height)
						if len(lines) == 0 || len(lines) > height {
							t.Fatalf("%s: %d lines", what, len(lines))
						}
						for _, l := range lines {
							bare := sgr.ReplaceAllString(l, "")
							if n := runewidth.StringWidth(bare); n > width {
								t.Fatalf("%s: a line of %d columns: %q", what, n, bare)
							}
							if strings.ContainsFunc(bare, unicode.IsControl) {
								t.Fatalf("%s: the cursor is moved by %q", what, bare)
							}
							if !f.Colour && colours.MatchString(l) {
								t.Fatalf("%s: a colour in %q", what, l)
							}
							if f.ASCII && strings.ContainsFunc(bare, isForeign) {
								t.Fatalf("%s: more than ASCII in %q", what, bare)
							}
						}
						if name != "nothing" && width >= 40 {
							if head := plain(lines[:min(2, len(lines))]); !strings.Contains(head,
								"DEADLOCK suspected: shard 2 (101)") {
								t.Fatalf("%s: the deadlock is not at the top:\n%s", what, head)
							}
						}
					}
				}
			}
		}
	}
}

func TestWhatIsStuckIsRedAndNamed(t *testing.T) {
	s := top.NewScreen(top.Face{Colour: true})
	s.See(census(stuck()))
	lines := s.Frame(120, 40)
	if l := lines[1]; l != "\x1b[1;31mDEADLOCK suspected: shard 2 (101), shard 10 (102)\x1b[0m" {
		t.Errorf("%q", l)
	}
	for i, want := range []string{`  shard 2 (101) waits for the mutex "b": shard 10 (102)`,
		`  shard 10 (102) waits for the mutex "a": shard 2 (101)`} {
		if got := plain(lines[2+i : 3+i]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	d := stuck()
	d.Deadlocks[0].Doubt = "process 101 is computing and may continue"
	s.See(census(d))
	if l := s.Frame(120, 40)[1]; l != "\x1b[33mcyclic wait; process 101 is computing and may continue: shard 2 "+
		"(101), shard 10 (102)\x1b[0m" {
		t.Errorf("in doubt: %q", l)
	}
	s.See(census(many(3)))
	if text := plain(s.Frame(120, 40)); strings.Contains(text, "DEADLOCK") || strings.Contains(text, "cyclic wait") {
		t.Errorf("it is over:\n%s", text)
	}
}

// names lists the second column of the table, from above.
func names(s top.Screen) (all []string) {
	inTable := false
	for _, l := range s.Frame(200, 60) {
		f := strings.Fields(sgr.ReplaceAllString(l, ""))
		if len(f) < 3 {
			inTable = false
		}
		if inTable {
			all = append(all, f[0])
		}
		if len(f) > 1 && f[1] == "NAME" || len(f) > 1 && strings.HasPrefix(f[1], "NAME") {
			inTable = true
		}
	}
	return all
}

func TestKeysSortFilterAndLeave(t *testing.T) {
	for _, c := range []struct {
		keys string
		want []string // processes, from above
	}{
		{"", []string{"100", "101", "102", "103"}},
		{"M", []string{"100", "102", "101", "103"}},
		{"MR", []string{"103", "101", "102", "100"}},
		{"P", []string{"103", "101", "100", "102"}},
		{"R", []string{"103", "102", "101", "100"}},
		{"s", []string{"103", "102", "101", "100"}},
		{"ss", []string{"101", "102", "100", "103"}}, // rank 2 is before rank 10
		{"sss", []string{"100", "102", "101", "103"}},
		{"ssssssssss", []string{"100", "101", "102", "103"}}, // all columns passed: as found
		{"/SHARD<enter>", []string{"101", "102"}},
		{"/shard", []string{"101", "102"}}, // while it is typed
		{"/shardx<backspace>", []string{"101", "102"}},
		{"/stopped<enter>", []string{"103"}},
		{"/zzz<enter>", nil},
		{"/zzz<enter><esc>", []string{"100", "101", "102", "103"}},
		{"/zzz<esc>", []string{"100", "101", "102", "103"}},
		{"/zzz<erase>shard 10<enter>", []string{"102"}},
		{"/q2?s 1<esc>", []string{"100", "101", "102", "103"}}, // what is typed is no command
		{"/shard<enter>M", []string{"102", "101"}},
		{"2/train<enter>1", []string{"100"}},
		{"<tab><backtab>", []string{"100", "101", "102", "103"}},
		{"?<esc>", []string{"100", "101", "102", "103"}},
		{"<enter><esc>", []string{"100", "101", "102", "103"}},
	} {
		s := top.NewScreen(top.Face{})
		s.See(census(stuck()))
		if press(t, s, c.keys) {
			t.Errorf("keys %q quit", c.keys)
		}
		if got := names(s); !slices.Equal(got, c.want) {
			t.Errorf("keys %q: %q, want %q\n%s", c.keys, got, c.want, plain(s.Frame(200, 60)))
		}
	}
	for keys, want := range map[string]bool{"q": true, "/q": false, "?q": true, "<enter>q": true, "2q": true,
		"x<unknown>": false} {
		s := top.NewScreen(top.Face{})
		s.See(census(stuck()))
		if quit := press(t, s, keys); quit != want {
			t.Errorf("keys %q: quit %t", keys, quit)
		}
	}
}

// chosen returns the row that is marked; the bar of views above it has a mark as well.
func chosen(lines []string) string {
	for _, l := range slices.Backward(lines) {
		if text, ok := strings.CutPrefix(l, "\x1b[7m"); ok {
			return strings.TrimSpace(sgr.ReplaceAllString(text, ""))
		}
	}
	return ""
}

func TestTheChosenRowStaysTheSameProcess(t *testing.T) {
	s := top.NewScreen(top.Face{})
	s.See(census(many(64)))
	s.Frame(80, 24)
	for _, c := range []struct{ keys, want string }{
		{"", "900"}, {"j", "901"}, {"<down><down>", "903"}, {"k", "902"}, {"<end>", "963"}, {"<down>", "963"},
		{"R", "963"}, {"<end>", "900"},
		{"R", "900"}, {"<up>", "900"}, {"G", "963"}, {"g", "900"},
	} {
		press(t, s, c.keys)
		if got := chosen(s.Frame(80, 24)); !strings.HasPrefix(got, c.want+" ") {
			t.Errorf("after %q: %q, want %s", c.keys, got, c.want)
		}
	}
	press(t, s, "<pgdn>")
	first := chosen(s.Frame(80, 24))
	press(t, s, "<pgup>")
	if got := chosen(s.Frame(80, 24)); strings.HasPrefix(first, "900 ") || !strings.HasPrefix(got, "900 ") {
		t.Errorf("a page down is %q, and up %q", first, got)
	}
	press(t, s, "G")
	s.See(census(many(10))) // the chosen one has ended
	if got := chosen(s.Frame(80, 24)); !strings.HasPrefix(got, "909 ") {
		t.Errorf("of ten the last one is chosen: %q", got)
	}
}

func TestDetailsSayWhatTheTablesHaveNoRoomFor(t *testing.T) {
	for keys, want := range map[string][]string{
		"j<enter>": {"process shard 2 (101)", "worker of program 100", "train (100)", "GOMAXPROCS 1",
			`the mutex "b": shard 10 (102)`, "mutex a; 1 waiter", "largest     block 8.1"},
		"<end><enter>": {"stopped", "message of queue block 7.1: train (100), others", "receives; 3 of 16"},
		"2<enter>":     {"queue block 7.1", "train.Batch", "45 puts/s and 44 gets/s", "train (100), 1 message"},
		"3<enter>":     {"mutex a", "shard 2 (101)", "locked"},
		"4<enter>":     {"process shard 2 (101)"},
		"5<enter>": {"block 9.1\n\nkind", "5 min", "weights", "tensor      float32 [16384 16384]",
			"SHOAL_DEBUG=lifetime"},
		"2":              {"2 queues of 100 not listed"},
		"5":              {"the largest of 12 blocks"},
		"4":              {"shard 2 (101)", `the mutex "b"`, "train (100), others"},
		" ":              {"PAUSED"},
		"?":              {"Ctrl-Z"},
		"/zzz<enter>":    {`no rows match "zzz"`, "Esc clears the filter"},
		"<enter><right>": {"process train (100)"},
	} {
		s := top.NewScreen(top.Face{})
		s.See(census(stuck()))
		press(t, s, keys)
		text := plain(s.Frame(120, 50))
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("keys %q: no %q in\n%s", keys, w, text)
			}
		}
	}
	s := top.NewScreen(top.Face{})
	s.See(census(many(5)))
	press(t, s, "G<enter>")
	s.See(census(many(2)))
	if text := plain(s.Frame(80, 24)); !strings.Contains(text, "no longer present") {
		t.Errorf("a process that has ended:\n%s", text)
	}
}

func TestAPauseShowsOneMoment(t *testing.T) {
	s := top.NewScreen(top.Face{})
	s.See(census(many(3)))
	press(t, s, " ")
	before := s.Frame(80, 24)
	for range 30 {
		s.See(census(stuck()))
	}
	if after := s.Frame(80, 24); !slices.Equal(before, after) {
		t.Errorf("it went on:\n%s\nthen\n%s", plain(before), plain(after))
	}
	press(t, s, " ")
	if text := plain(s.Frame(80, 24)); !strings.Contains(text, "shard 2") || strings.Contains(text, "PAUSED") {
		t.Errorf("it does not go on:\n%s", text)
	}
}

func TestAFrameOf40Columns(t *testing.T) {
	s := top.NewScreen(top.Face{})
	s.See(census(stuck()))
	const want = `shoal top  CPUs  41 %            █  1 pr
DEADLOCK suspected: shard 2 (101), shard
  shard 2 (101) waits for the mutex "b":
  shard 10 (102) waits for the mutex "a"
100 train [###.....] 3.0 GiB of 8.0 GiB 
 1 processes  2  3  4  5   by as found
 PID  NAME                HOLDS  STATE  
 100  train             1.0 GiB  running
 101  shard 2           5.0 MiB  running
 102  shard 10          7.0 MiB  running
 103  資料?[31m読み込…     64 B  stopped


q quit  ? help  / filter  s sort  Enter `
	if got := plain(s.Frame(40, 14)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What shoal watch draws as a curve is a number here, by its name.
func TestNamedNumbersAreShown(t *testing.T) {
	value := func(v float64) *float64 { return &v }
	d := stuck()
	d.Queues = append(d.Queues,
		domains.Queue{QueueView: observe.QueueView{Block: "block 11.1", Names: []string{"training loss"},
			Label:  "Latest[float64]",
			Latest: true}, Value: value(0.25)},
		domains.Queue{QueueView: observe.QueueView{Block: "block 12.1", Names: []string{"accuracy"},
			Label:  "Latest[float64]",
			Latest: true}, Value: value(0.96875)},
		domains.Queue{QueueView: observe.QueueView{Block: "block 13.1", Label: "Latest[float64]", Latest: true},
			Value: value(7.5)})
	s := top.NewScreen(top.Face{ASCII: true})
	s.See(census(d))
	lines := strings.Split(plain(s.Frame(160, 40)), "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "training loss 0.25 ") })
	if i < 1 || !strings.HasPrefix(lines[i-1], "100 train") || !strings.Contains(lines[i], "accuracy 0.9688 ") ||
		strings.Index(lines[i], "accuracy") > strings.Index(lines[i], "loss") || strings.Contains(lines[i], "7.5") {
		t.Errorf("no line of the named numbers below the program:\n%s", strings.Join(lines, "\n"))
	}
	press(t, s, "2")
	if f := plain(s.Frame(160, 40)); !strings.Contains(f, "VALUE") ||
		!regexp.MustCompile(`(?m)^training loss +0\.25 `).MatchString(f) ||
		!regexp.MustCompile(`(?m)^block 13\.1 +7\.5 `).MatchString(f) {
		t.Errorf("the table of queues has no values:\n%s", f)
	}
	press(t, s, "<end><enter>")
	d.Queues[3].Value = value(15)
	s.See(census(d))
	if f := plain(s.Frame(160, 40)); !strings.Contains(f, "value") || !strings.Contains(f, "15\n") ||
		!strings.Contains(f, "=#") {
		t.Errorf("the detail has no value and no trend:\n%s", f)
	}
	press(t, s, "<esc>1")
	for height := range 60 { // where there is little room, programs come first
		if n := len(s.Frame(160, height)); n > height {
			t.Errorf("%d lines of %d", n, height)
		}
	}
	var all []domains.Domain
	for i := range 4 {
		d.Address = fmt.Sprint("@shoal/0/", i)
		all = append(all, d)
	}
	s.See(census(all...))
	if f := plain(s.Frame(160, 40)); strings.Count(f, "100 train") < 4 || strings.Contains(f, "more") {
		t.Errorf("a program has no line, since a curve has it:\n%s", f)
	}
}
