//go:build linux

package main

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var (
	sessions = flag.Int("histories.sessions", 2, "groups of processes for each kind of object")
	mutants  = flag.Bool("histories.mutants", false,
		"also build programs with a planted fault each, which must be found")
)

func build(t *testing.T, flags ...string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "histories")
	c := exec.Command("go", append(append([]string{"build", "-o", program}, flags...), ".")...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// check runs a program and returns its counts.
func check(t *testing.T, program string, args ...string) (c counts, log string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append(args, "-out", t.ArtifactDir())...)
	var text strings.Builder
	cmd.Stderr = &text
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if json.Unmarshal([]byte(lines[len(lines)-1]), &c) != nil {
		return c, string(out) + text.String(), err
	}
	return c, text.String(), err
}

// Each history of queues, values and locks has an order that its model permits, while processes
// are killed.
func TestHistories(t *testing.T) {
	program := build(t)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			kills := 0
			if *sessions > 1 {
				kills = *sessions / 2
			}
			c, log, err := check(t, program, "-object", k.name, "-sessions", strconv.Itoa(*sessions))
			t.Logf("%+v", c)
			if err != nil {
				t.Fatalf("%v\n%s", err, log)
			}
			if c.Histories != *sessions*objects || c.Overlaps < c.Histories || c.Kills != kills {
				t.Errorf("%+v: want %d histories, an operation in each that overlaps another one, and %d kills",
					c, *sessions*objects, kills)
			}
		})
	}
}

// A mutant is a fault: new in the place of old, once in a file of the core module.
type mutant struct {
	name, kind, file, old, new string
}

var planted = []mutant{
	{"a get finds the queue empty while a put before it is not published", "queue", "internal/arena/ring_get.go",
		"return nil, 0, errPutting", "return nil, 0, ErrEmpty"},
	{"two gets claim one message", "queue", "internal/arena/ring_get.go",
		"if s.Word.CAS(w, word.MakeSlot(lap, claim, l.id)) {",
		"if s.Word.Store(word.MakeSlot(lap, claim, l.id)); true {"},
	{"the capacity is that of the ring", "queue", "internal/arena/ring_put.go", "if r.exceedsLimit(tk) {",
		"if false {"},
	{"a message in 64 is dropped", "queue", "internal/arena/ring_put.go",
		"s.StoreEndWord(word.MakeSlot(lap, word.SlotFull, l.id), order)",
		"if l.rec.Opseq.Load()%64 == 0 {\ns.StoreEndWord(word.MakeSlot(lap, word.SlotSkip, 0), order)\n} else " +
			"{\ns.StoreEndWord(word.MakeSlot(lap, word.SlotFull, l.id), order)\n}"},
	{"a get takes the second message", "queue", "internal/arena/ring_get.go",
		"		tk := r.hdr.Head.Load()\n		var w word.Slot\n",
		"		tk := r.hdr.Head.Load()\n		if n := r.slot(tk + 1).Word.Load(); l.rec.Opseq.Load()%16 == 0 " +
			"&& n.Lap() == r.lap(tk+1) && n.State() == word.SlotFull {\n			tk++\n		}\n		var " +
			"w word.Slot\n"},
	{"a lock is taken by a load and a store", "mutex", "internal/arena/sync_mutex.go",
		"if !m.isClosed() && m.c.Lock.CAS(word.LockFree, m.me|word.LockHeld) {\n\t\treturn nil\n\t}",
		"if !m.isClosed() && m.c.Lock.Load() == word.LockFree {\n\t\tm.c.Lock.Store(m.me | " +
			"word.LockHeld)\n\t\treturn nil\n\t}"},
	{"the death of a lock's owner is not reported", "mutex", "internal/arena/sync_mutex.go",
		"case m.c.Lock.CAS(w, m.me|word.LockDirty):\n\t\t\tm.c.Dead.Store(uint64(w))\n\t\t\treturn " +
			"newPeerError(w, ErrOwnerDied)",
		"case m.c.Lock.CAS(w, m.me|word.LockHeld):\n\t\t\treturn nil"},
	{"a permit of a dead process returns twice", "semaphore", "internal/arena/sync_semaphore.go",
		"m.setPermits(n+back, i, v&word.IdentityMask, 0)", "m.setPermits(n+2*back, i, v&word.IdentityMask, 0)"},
	{"the version of a Load is read after its value", "latest", "ipc/latest.go",
		"	if v, err = decodeMessage(in, l.out.plan); err != nil {\n		return v, 0, fmt.Errorf(\"load: " +
			"%w\", err)\n	}\n	return v, version, nil",
		"	if v, err = decodeMessage(in, l.out.plan); err != nil {\n		return v, 0, fmt.Errorf(\"load: " +
			"%w\", err)\n	}\n	return v, end.ring.Version(), nil"},
	{"a compare-and-swap compares nothing while the dict has two keys", "dict", "manager/dict.go",
		"same := err == nil && equalItems(old, c.Args[1])",
		"same := err == nil && (len(d.entries) == 2 || equalItems(old, c.Args[1]))"},
}

// Each planted fault replaces text that its file has once. Without this test only make histories
// would see that the text has changed.
func TestPlanted_FaultsFitTheirFiles(t *testing.T) {
	for _, m := range planted {
		b, err := os.ReadFile(filepath.Join("../..", m.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), m.old); n != 1 {
			t.Errorf("%s: %s has its text %d times, want once", m.name, m.file, n)
		}
	}
}

// The checker finds each of ten planted faults.
func TestHistories_FindPlantedFaults(t *testing.T) {
	if !*mutants {
		t.Skip("it builds ten programs: make histories")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range planted {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			path := filepath.Join(root, m.file)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(b), m.old); n != 1 {
				t.Fatalf("%s has %q %d times, want once", m.file, m.old, n)
			}
			dir := t.TempDir()
			changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
			names, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(changed, []byte(strings.Replace(string(b), m.old, m.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(overlay, names, 0o600); err != nil {
				t.Fatal(err)
			}
			program := build(t, "-overlay", overlay)
			for n := range 40 {
				c, log, err := check(t, program, "-object", m.kind, "-sessions", "4", "-kills", "2", "-seed",
					strconv.Itoa(1+n))
				if err == nil {
					continue
				}
				if c.Lost == 0 {
					t.Fatalf("%v\n%s", err, log)
				}
				t.Logf("found in run %d: %+v", n+1, c)
				return
			}
			t.Error("not found in 160 sessions")
		})
	}
}
