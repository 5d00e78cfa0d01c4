package diagnose_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
)

// A recorded process is written as files in the format of /proc.
type recorded struct {
	pid, parent int
	state       byte   // default S
	command     string // with spaces; default "python train.py"
	exit        int
	group       string              // of controllers cpu and memory
	files       map[int]string      // target, and mode after a comma
	limit       int                 // of open files; default 1024
	threads     map[int]blockedCall // default: one that sleeps
	started     int
}

// A blockedCall is a system call with its arguments, by its name.
type blockedCall struct {
	name string
	args [4]uint64
}

// callNumbers are the numbers of system calls for the machine of the test.
var callNumbers = map[string]map[string]int{
	"amd64": {"read": 0, "write": 1, "futex": 202, "wait4": 61, "sleep": 230, "poll": 7},
	"arm64": {"read": 63, "write": 64, "futex": 98, "wait4": 260, "sleep": 115, "poll": 73},
}[runtime.GOARCH]

// record writes processes into a tree like /proc.
func record(t *testing.T, all ...recorded) procfs.System {
	t.Helper()
	if callNumbers == nil {
		t.Skip("no numbers of system calls for " + runtime.GOARCH)
	}
	root := t.TempDir()
	s := procfs.System{Proc: filepath.Join(root, "proc"), Cgroup: filepath.Join(root, "cgroup")}
	for _, r := range all {
		r.write(t, filepath.Join(s.Proc, fmt.Sprint(r.pid)))
	}
	return s
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r recorded) write(t *testing.T, dir string) {
	if r.state == 0 {
		r.state = 'S'
	}
	if r.command == "" {
		r.command = "python train.py"
	}
	if r.threads == nil {
		r.threads = map[int]blockedCall{r.pid: {name: "sleep"}}
	}
	stat := func(tid int) string {
		return fmt.Sprintf("%d (python (x) y) %c %d %d %d 0 -1 0 1 0 2 0 10 5 0 0 20 0 %d 0 %d 1000 300 %s0 0 0 0 %d",
			tid, r.state, r.parent, r.pid, r.pid, len(r.threads), r.started, strings.Repeat("0 ", 23), r.exit)
	}
	write(t, dir, "stat", stat(r.pid))
	if r.state == 'Z' {
		write(t, dir, "cmdline", "")
		return
	}
	write(t, dir, "cmdline", strings.ReplaceAll(r.command, " ", "\x00")+"\x00")
	write(t, dir, "maps", "7f0000000000-7f0000001000 r--p 00000000 fe:00 7 /usr/lib/libpython3.11.so.1.0\n"+
		"7f0000002000-7f0000003000 r--p 00000000 fe:00 8 /usr/lib/libtorch_cpu.so\n")
	limit := r.limit
	if limit == 0 {
		limit = 1024
	}
	write(t, dir, "limits",
		fmt.Sprintf("Limit  Soft Limit  Hard Limit  Units\nMax open files  %d  4096  files\n", limit))
	write(t, dir, "io", "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n")
	write(t, dir, "environ", "HOME=/\x00")
	if r.group != "" {
		write(t, dir, "cgroup", fmt.Sprintf("2:memory:%s\n1:cpu:%[1]s\n0::/\n", r.group))
	}
	for tid, c := range r.threads {
		task := filepath.Join(dir, "task", fmt.Sprint(tid))
		write(t, task, "stat", stat(tid))
		write(t, task, "wchan", c.name)
		write(t, task, "schedstat", "1000 2000 3\n")
		write(t, task, "syscall",
			fmt.Sprintf("%d %#x %#x %#x %#x 0x0 0x0 0x7ffe 0x7f8f\n", callNumbers[c.name], c.args[0],
				c.args[1], c.args[2], c.args[3]))
	}
	if err := os.MkdirAll(filepath.Join(dir, "fd"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, fd := range slices.Sorted(maps.Keys(r.files)) {
		target, mode, _ := strings.Cut(r.files[fd], ",")
		if err := os.Symlink(target, filepath.Join(dir, "fd", fmt.Sprint(fd))); err != nil {
			t.Fatal(err)
		}
		write(t, dir, fmt.Sprintf("fdinfo/%d", fd), fmt.Sprintf("pos: 0\nflags: 010000%s\n", mode))
	}
}

// private is a wait for a lock of the own process.
var private = blockedCall{"futex", [4]uint64{0x5000, 128 | 9, 0, 0}}

const spawnCommand = "python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, " +
	"pipe_handle=7) --multiprocessing-fork"

func manyFiles(n int) map[int]string {
	files := map[int]string{}
	for fd := range n {
		files[fd] = fmt.Sprintf("/dev/shm/torch_11_123_%d (deleted)", fd)
	}
	return files
}

func TestExamine_ExplainsRecordedTrees(t *testing.T) {
	for _, c := range []struct {
		name  string
		tree  []recorded
		rule  string // "" means no finding
		pid   int
		words string // in the cause
	}{
		{"healthy", []recorded{{pid: 10, parent: 1}, {pid: 11, parent: 10}}, "", 0, ""},
		{"killed", []recorded{
			{pid: 10, parent: 1, threads: map[int]blockedCall{10: {name: "read"}}},
			{pid: 11, parent: 10, state: 'Z', exit: 9}}, "worker-killed", 11,
			"signal 9 (SIGKILL), and its parent 10 waits"},
		{"bus error", []recorded{{pid: 10, parent: 1}, {pid: 11, parent: 10, state: 'Z', exit: 7}},
			"worker-killed", 11, "SIGBUS"},
		{"failed", []recorded{{pid: 10, parent: 1}, {pid: 11, parent: 10, state: 'Z', exit: 3 << 8}},
			"worker-failed", 11, "status 3"},
		{"stopped", []recorded{{pid: 10, parent: 1}, {pid: 11, parent: 10, state: 'T'}}, "stopped", 11,
			"forked process 11"},
		{"zombie", []recorded{{pid: 10, parent: 1}, {pid: 11, parent: 10, state: 'Z'}}, "zombie", 11,
			"parent 10 does not reap"},
		{"ended producer", []recorded{
			{pid: 10, parent: 1, threads: map[int]blockedCall{10: {name: "read"}}}, {pid: 11, parent: 10, state: 'Z'}},
			"waits-for-ended", 11, "no living process will send"},
		{"zombie beside " +
			"a worker", []recorded{{pid: 10, parent: 1}, {pid: 11, parent: 10, state: 'Z'}, {pid: 12, parent: 10}},
			"", 0, ""},
		{"orphan", []recorded{{pid: 11, parent: 1, command: spawnCommand}}, "orphan", 11, "worker 11 is an orphan"},
		{"descriptors", []recorded{{pid: 10, parent: 1, limit: 64, files: manyFiles(60)}}, "descriptors", 10,
			"60 of at most 64"},
		{"descriptors below the limit", []recorded{{pid: 10, parent: 1, limit: 64, files: manyFiles(50)}}, "", 0, ""},
		{"lock after fork", []recorded{
			{pid: 10, parent: 1, threads: map[int]blockedCall{10: {name: "wait4"}, 20: {name: "sleep"}}},
			{pid: 11, parent: 10, threads: map[int]blockedCall{11: private}}}, "fork-with-threads", 11, "parent 10"},
		{"lock with a timeout", []recorded{{pid: 10, parent: 1}, {pid: 11, parent: 10,
			threads: map[int]blockedCall{11: {"futex", [4]uint64{1, 137, 0, 0x7ffe}}}}}, "", 0, ""},
		{"lock that a thread may release", []recorded{{pid: 10, parent: 1}, {pid: 11, parent: 10,
			threads: map[int]blockedCall{11: private, 12: {name: "poll"}}}}, "", 0, ""},
		{"join before drain", []recorded{
			{pid: 10, parent: 1, threads: map[int]blockedCall{10: {name: "wait4", args: [4]uint64{11}}},
				files: map[int]string{3: "pipe:[77],0", 4: "pipe:[77],1"}},
			{pid: 11, parent: 10, threads: map[int]blockedCall{11: private, 12: {name: "write", args: [4]uint64{4}}},
				files: map[int]string{3: "pipe:[77],0", 4: "pipe:[77],1"}}}, "join-before-drain", 10,
			"joins forked process 11"},
		{"slow consumer", []recorded{
			{pid: 10, parent: 1, files: map[int]string{3: "pipe:[77],0"}},
			{pid: 11, parent: 10, threads: map[int]blockedCall{11: {name: "write", args: [4]uint64{4}}},
				files: map[int]string{4: "pipe:[77],1"}}}, "slow-consumer", 10, "1 process waits for a full queue"},
		{"arguments of a new process", []recorded{
			{pid: 10, parent: 1, threads: map[int]blockedCall{10: {name: "write", args: [4]uint64{4}}},
				files: map[int]string{4: "pipe:[77],1"}},
			{pid: 11, parent: 10, command: spawnCommand, files: map[int]string{7: "pipe:[77],0"}}}, "", 0, ""},
		{"backlog of tasks", []recorded{
			{pid: 10, parent: 1, threads: map[int]blockedCall{10: private, 20: {name: "write", args: [4]uint64{4}}},
				files: map[int]string{4: "pipe:[77],1"}},
			{pid: 11, parent: 10, files: map[int]string{3: "pipe:[77],0"}}}, "", 0, ""},
		{"tracker", []recorded{
			{pid: 10, parent: 1, files: map[int]string{5: "pipe:[5],1"}},
			{pid: 11, parent: 10, state: 'Z', exit: 9, started: 1},
			{pid: 12, parent: 10, command: spawnCommand, started: 2, files: map[int]string{5: "pipe:[5],1"}}},
			"resource-tracker-dead", 11, "of job 10 is dead"},
		{"tracker alive", []recorded{
			{pid: 10, parent: 1, files: map[int]string{5: "pipe:[5],1"}},
			{pid: 11, parent: 10, command: "python -c from multiprocessing.resource_tracker import main;main(4)",
				files: map[int]string{4: "pipe:[5],0"}},
			{pid: 12, parent: 10, command: spawnCommand, files: map[int]string{5: "pipe:[5],1"}}}, "", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := record(t, c.tree...)
			last := c.tree[len(c.tree)-1]
			if last.state == 'Z' {
				last = c.tree[0]
			}
			o := diagnose.Options{System: s, Span: time.Millisecond, CPUs: 4}
			r, err := diagnose.Examine(context.Background(), o, last.pid)
			if err != nil {
				t.Fatal(err)
			}
			if c.rule == "" {
				if !r.Healthy() {
					t.Errorf("found %+v, want nothing", r.Findings)
				}
				return
			}
			if r.Healthy() {
				t.Fatalf("found nothing, want %s", c.rule)
			}
			f := r.Findings[0]
			if f.Rule != c.rule || f.PID != c.pid || !strings.Contains(f.Cause, c.words) || f.Cure == "" ||
				len(f.Evidence) == 0 || r.Verdict != f.Cause {
				t.Errorf("found %+v, want %s of process %d with %q", f, c.rule, c.pid, c.words)
			}
		})
	}
}

func TestExamine_ReadsControlGroups(t *testing.T) {
	s := record(t, recorded{pid: 10, parent: 1, group: "/job"},
		recorded{pid: 11, parent: 10, group: "/job", state: 'Z', exit: 9})
	write(t, s.Cgroup, "memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
	write(t, s.Cgroup, "memory/job/memory.limit_in_bytes", "1048576\n")
	write(t, filepath.Join(s.Proc, "11"), "cgroup", "2:memory:/job\n")
	r, err := diagnose.Examine(context.Background(), diagnose.Options{System: s, Span: time.Millisecond}, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Rule != "worker-out-of-memory" ||
		!strings.Contains(r.Verdict, "control group /job") {
		t.Errorf("found %+v", r.Findings)
	}
	if text := strings.Join(r.Findings[0].Evidence, "\n"); !strings.Contains(text,
		"2 processes killed for memory, a limit of 1.0 MiB") {
		t.Errorf("evidence %s", text)
	}
}

// The number of a killed process may be used again. A message of the kernel that is older than the
// process is about another one.
func TestExamine_ComparesTimesOfKills(t *testing.T) {
	for killed, rule := range map[int]string{5: "worker-killed", 100: "worker-out-of-memory"} { // seconds since boot
		s := record(t, recorded{pid: 10, parent: 1},
			recorded{pid: 11, parent: 10, state: 'Z', exit: 9, started: 9000}) // 90 s
		s.Log = filepath.Join(s.Proc, "kmsg")
		write(t, s.Proc, "kmsg", fmt.Sprintf("3,2,%d000000,-;Out of memory: Killed process 11 (python) total-vm:1kB\n", killed))
		r, err := diagnose.Examine(context.Background(), diagnose.Options{System: s, Span: time.Millisecond}, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != 1 || r.Findings[0].Rule != rule {
			t.Errorf("killed at %d s: found %+v, want %s", killed, r.Findings, rule)
		}
	}
}

func TestExamine_ExplainsReapedWorkers(t *testing.T) {
	s := record(t,
		recorded{pid: 10, parent: 1, group: "/job",
			threads: map[int]blockedCall{10: {name: "read", args: [4]uint64{3}}},
			files:   map[int]string{3: "pipe:[77],0", 5: "pipe:[78],0"}}, // 78 was the sentinel of a worker
		recorded{pid: 11, parent: 10, group: "/job",
			threads: map[int]blockedCall{11: {name: "read", args: [4]uint64{4}}},
			files:   map[int]string{4: "pipe:[79],0", 6: "pipe:[77],1", 7: "pipe:[79],1"}})
	o := diagnose.Options{System: s, Span: time.Millisecond}
	examine := func() *diagnose.Report {
		r, err := diagnose.Examine(context.Background(), o, 10)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := examine(); !r.Healthy() {
		t.Errorf("without a kill found %+v", r.Findings)
	}
	write(t, s.Cgroup, "memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
	r := examine()
	if len(r.Findings) != 1 || r.Findings[0].Rule != "worker-out-of-memory" || r.Findings[0].PID != 10 ||
		!slices.Contains(pageVerdicts(t)["worker-out-of-memory"], generalize(r.Verdict)) {
		t.Errorf("found %+v", r.Findings)
	}
	o.System.Log = filepath.Join(s.Proc, "kmsg") // a file instead of a device: one read returns all of it
	write(t, s.Proc, "kmsg", "3,2,5000100,-;Out of memory: Killed process 12 (python (x) y) total-vm:1kB\n")
	if r := examine(); len(r.Findings) != 0 && r.Findings[0].PID == 12 {
		t.Errorf("a process with another name was taken for a worker: %+v", r.Findings)
	}
	write(t, s.Proc, "kmsg", "3,2,5000100,-;Out of memory: Killed process 12 (pt_data_worker) total-vm:1kB\n")
	if r := examine(); len(r.Findings) != 0 {
		t.Errorf("a process of another control group was taken for a worker: %+v", r.Findings)
	}
}

func TestExamine_RefusesOtherProcesses(t *testing.T) {
	s := record(t, recorded{pid: 10, parent: 1})
	write(t, filepath.Join(s.Proc, "10"), "maps", "")
	for _, pid := range []int{-1, 0, 10, 99} {
		o := diagnose.Options{System: s, Span: time.Millisecond}
		if _, err := diagnose.Examine(context.Background(), o, pid); !errors.Is(err, diagnose.ErrProcess) {
			t.Errorf("process %d: %v, want ErrProcess", pid, err)
		}
	}
}

func TestClean_RemovesOnlyProvenLeaks(t *testing.T) {
	s := record(t, recorded{pid: 10, parent: 1})
	link := filepath.Join(s.Proc, "self/ns/pid")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pid:[4026531836]", link); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"torch_10_1_1", "torch_99_1_1", "torch_99_1_2", "torch_98_1_1", "sem.mp-abc",
		"psm_1", "other"} {
		write(t, dir, name, "data")
		if name != "torch_99_1_2" { // too young
			os.Chtimes(filepath.Join(dir, name), old, old)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "torch_98_1_1"), filepath.Join(s.Proc, "10/fd/3")); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	left := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if err := diagnose.Clean(&out, s, dir, false); err != nil || len(left()) != 7 {
		t.Fatalf("without --yes %v are left, %v", left(), err)
	}
	if err := diagnose.Clean(&out, s, dir, true); err != nil || slices.Contains(left(), "torch_99_1_1") ||
		len(left()) != 6 {
		t.Fatalf("%v are left, %v; want all but torch_99_1_1\n%s", left(), err, out.String())
	}
	if !strings.Contains(out.String(), "torch_10_1_1") || !strings.Contains(out.String(), "is alive") {
		t.Errorf("the list lacks the file of a living process:\n%s", out.String())
	}
}
