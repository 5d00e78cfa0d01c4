package diagnose_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose"
)

// A seededFault is a program in testdata/programs with the rule that must find its fault.
type seededFault struct {
	name   string
	rule   string
	method string // the only start method with which the fault can occur; "" means all
	served string // rule for forkserver, which reaps the culprit at once; another process is then named
	needs  string // control group of version 1, or "mount"
	plain  bool   // any Python can run it
	ends   bool   // the program kills itself
}

var seededFaults = []seededFault{
	{name: "killed_worker", rule: "worker-killed", served: "waits-for-ended", plain: true},
	{name: "out_of_memory", rule: "worker-out-of-memory", needs: "memory"},
	{name: "stopped_worker", rule: "stopped"},
	{name: "full_shm", rule: "shm-full", needs: "mount"},
	{name: "descriptors", rule: "descriptors"},
	{name: "fork_lock", rule: "fork-with-threads", method: "fork"},
	{name: "dead_holder", rule: "lock-held-by-dead", served: "lock-held-by-dead", plain: true},
	{name: "dead_pin_thread", rule: "pin-thread-dead"},
	{name: "slow_consumer", rule: "slow-consumer"},
	{name: "join_before_drain", rule: "join-before-drain", plain: true},
	{name: "leaked_names", rule: "leaked-names", ends: true},
	{name: "orphan", rule: "orphan", plain: true, ends: true},
	{name: "missing_rank", rule: "rank-missing"},
	{name: "rank_order", rule: "rank-order"},
	{name: "oversubscribed", rule: "oversubscribed"},
	{name: "throttled", rule: "throttled", needs: "cpu"},
	{name: "slow_device", rule: "slow-device", needs: "blkio"},
	{name: "endless_loop", rule: "busy-worker"},
	{name: "killed_tracker", rule: "resource-tracker-dead", plain: true},
	{name: "zombie", rule: "zombie", method: "fork", plain: true},
	{name: "two_locks", rule: "deadlock-between-processes", plain: true},
	{name: "lost_task", rule: "pool-task-lost", plain: true},
	{name: "unfinished_tasks", rule: "task-done-missing", plain: true},
	{name: "limited_queue", rule: "join-before-drain", plain: true},
	{name: "silent_server", rule: "stuck-worker"},
	{name: "receivers", rule: "rank-order"},
	{name: "absent_rank", rule: "rank-missing"},
	{name: "foreign_shm", rule: "shm-full", needs: "mount", plain: true},
	{name: "async_rank", rule: "rank-missing"},
	{name: "async_forgotten", rule: "rank-missing"},
	{name: "busy_rank", rule: "rank-missing"},
	{name: "pipe_receivers", rule: "deadlock-between-processes", plain: true},
	{name: "pipe_senders", rule: "deadlock-between-processes", plain: true},
	{name: "lone_loop", rule: "busy-worker"},
	{name: "lone_sleeper", rule: "stuck-worker"},
	{name: "lone_poller", rule: "stuck-worker"},
	{name: "reaped_oom", rule: "worker-out-of-memory", needs: "memory", plain: true},
	{name: "failed_loader", rule: "worker-killed"},
	{name: "dead_permits", rule: "lock-held-by-dead", served: "lock-held-by-dead", plain: true},
	{name: "leaked_segments", rule: "leaked-names", method: "fork", plain: true, ends: true},
	{name: "barrier_parties", rule: "never-signalled", plain: true},
	{name: "unset_event", rule: "never-signalled", plain: true},
	{name: "early_notification", rule: "never-signalled", plain: true},
	{name: "failing_initializer", rule: "pool-workers-fail", method: "fork", plain: true},
	{name: "ended_holder", rule: "fork-with-threads", method: "fork", plain: true},
	{name: "local_event", rule: "deadlock-in-process", method: "fork", plain: true},
	{name: "unread_output", rule: "join-before-drain", method: "fork", plain: true},
}

// commonFaults is the number of seeded faults, and of healthy programs, that the repeated test
// runs: those that users meet most often are the first ones.
const commonFaults = 20

var healthyPrograms = strings.Fields(`fast_loader slow_loader slow_computing_loader one_worker
	compute_bound large_batches short_epochs stream no_workers pool pipeline fan_out ping_pong
	long_critical_section idle_workers join_in_order manager hogwild ddp ddp_slow_rank file_system threads
	idle_pool slow_pool lazy_pool executor servers between_epochs joined_queue consumer_group
	ddp_very_slow_rank async_ranks async_slow_rank rank_with_slow_loader sleepy_worker heavy_sample
	slow_answers shared_pipe permits segments finished_workers stop_handler timed_event
	tasks_per_child large_arguments`)

// plainPython returns the python3 on the PATH, or skips the test.
func plainPython(t *testing.T) string {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on the PATH")
	}
	return python
}

// pythons returns the interpreters with PyTorch, or skips the test.
func pythons(t *testing.T) []string {
	list := os.Getenv("SHOAL_TORCH_PYTHONS")
	if list == "" {
		t.Skip("SHOAL_TORCH_PYTHONS names no interpreter with PyTorch; see scripts/interop")
	}
	return strings.Split(list, ":")
}

func methods() []string {
	if list := os.Getenv("SHOAL_DOCTOR_METHODS"); list != "" {
		return strings.Split(list, ":")
	}
	return []string{"fork", "spawn", "forkserver"}
}

// skipWithout skips a test that needs the privilege to make a control group or a mount namespace.
func skipWithout(t *testing.T, needs string) {
	if needs == "mount" && os.Getuid() != 0 {
		t.Skip("a file system can be mounted by root only")
	}
	if needs == "" || needs == "mount" {
		return
	}
	dir := filepath.Join("/sys/fs/cgroup", needs, fmt.Sprintf("shoal-probe-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no control group of version 1 can be made: %v", err)
	}
	os.Remove(dir)
}

// start runs a program until it prints its READY line, and returns the process to examine and the
// culprit. The program is killed with its process group at the end of the test.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, pid, culprit int) {
	t.Helper()
	cmd = exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var names []string
	t.Cleanup(func() {
		names = append(names, mappedNames(cmd.Process.Pid)...)
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Process.Wait()
		for _, name := range names {
			os.Remove(name) // the resource tracker was killed, too
		}
		removeGroups(t, cmd.Process.Pid)
		os.Remove(fmt.Sprintf("/tmp/shoal-fault-%d", cmd.Process.Pid)) // where ranks meet
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "READY pid=%d culprit=%d", &pid, &culprit); err == nil {
			names = mappedNames(cmd.Process.Pid) // a fault may kill some of the processes
			return cmd, pid, culprit
		}
	}
	cmd.Wait()
	t.Fatalf("%v printed no READY line:\n%s", args, errs.String())
	return nil, 0, 0
}

// mappedNames returns the files in /dev/shm that the processes of a group have mapped, such as the
// named semaphores of spawned processes. It compares inodes, because a semaphore has another name
// in the process that created it.
func mappedNames(group int) (names []string) {
	mapped := make(map[string]bool) // by device and inode
	maps, _ := filepath.Glob("/proc/[0-9]*/maps")
	for _, path := range maps {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if of, err := syscall.Getpgid(pid); err != nil || of != group {
			continue
		}
		text, _ := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 5 && strings.HasPrefix(f[5], "/dev/shm/") {
				mapped[f[3]+" "+f[4]] = true
			}
		}
	}
	entries, _ := os.ReadDir("/dev/shm")
	for _, e := range entries {
		var st syscall.Stat_t
		name := filepath.Join("/dev/shm", e.Name())
		if syscall.Lstat(name, &st) != nil {
			continue
		}
		if mapped[fmt.Sprintf("%02x:%02x %d", st.Dev>>8&0xfff, st.Dev&0xff, st.Ino)] {
			names = append(names, name)
		}
	}
	return names
}

// removeGroups removes the control groups of a program, when its processes have left them.
func removeGroups(t *testing.T, pid int) {
	groups, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/*/shoal-*-%d", pid))
	for _, g := range groups {
		var err error
		for range 1500 { // a write to a throttled device has to end first
			if err = os.Remove(g); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("control group was not removed: %v", err)
		}
	}
}

func TestStart_RemovesNamesOfKilledPrograms(t *testing.T) {
	python := plainPython(t)
	var names []string
	t.Run("program", func(t *testing.T) {
		cmd, _, _ := start(t, python, "testdata/programs/killed_worker.py", "spawn")
		if names = mappedNames(cmd.Process.Pid); len(names) < 6 {
			t.Errorf("found %q, want the three semaphores of each of two queues", names)
		}
	})
	for _, name := range names {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s was not removed", name)
		}
	}
}

// TestExamine_NamesFaultsOfPrograms needs no PyTorch.
func TestExamine_NamesFaultsOfPrograms(t *testing.T) {
	examineFaults(t, plainPython(t), []string{"fork", "spawn"}, func(f seededFault) bool { return f.plain })
}

func TestExamine_NamesSeededFaults(t *testing.T) {
	for _, python := range pythons(t) {
		examineFaults(t, python, methods(), func(seededFault) bool { return true })
	}
}

func examineFaults(t *testing.T, python string, methods []string, selects func(seededFault) bool) {
	page := pageVerdicts(t)
	for _, method := range methods {
		for _, f := range seededFaults {
			if f.method != "" && f.method != method || !selects(f) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%s", environmentOf(python), method, f.name), func(t *testing.T) {
				report, culprit, _ := f.examine(t, python, method)
				if !f.isNamed(report, culprit, method) {
					t.Errorf("want %s of process %d first", f.rule, culprit)
					report.Print(t.Output())
				} else if got := generalize(report.Verdict); report.Findings[0].PID == culprit &&
					!slices.Contains(page[f.rule], got) {
					t.Errorf("docs/doctor.md has for %s the verdicts\n%s\nwant\n%s", f.rule,
						strings.Join(page[f.rule], "\n"), got)
				}
			})
		}
	}
}

// environmentOf returns the directory of an interpreter's environment.
func environmentOf(python string) string { return filepath.Base(filepath.Dir(filepath.Dir(python))) }

// examine runs the program and returns the report about it, with the process at fault and the time
// that the examination took.
func (f seededFault) examine(t *testing.T, python, method string) (*diagnose.Report, int, time.Duration) {
	t.Helper()
	skipWithout(t, f.needs)
	args := []string{python, "testdata/programs/" + f.name + ".py", method}
	if f.needs == "mount" {
		args = append([]string{"unshare", "-m", "sh", "-c",
			`mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"`, "sh"}, args...)
	}
	cmd, pid, culprit := start(t, args...)
	if f.ends {
		cmd.Process.Wait()
	}
	begin := time.Now()
	report, err := diagnose.Examine(context.Background(), diagnose.Options{}, pid)
	if err != nil {
		t.Fatal(err)
	}
	return report, culprit, time.Since(begin)
}

// A process counts once as a waiter, however many of its threads wait.
func TestExamine_CountsProcessesThatWait(t *testing.T) {
	t.Setenv("FAULT_THREADS", "3")
	f := seededFault{name: "dead_holder", rule: "lock-held-by-dead"}
	report, culprit, _ := f.examine(t, plainPython(t), "fork")
	if !f.isNamed(report, culprit, "fork") {
		report.Print(t.Output())
		t.Fatal("the dead holder is not named")
	}
	if text := strings.Join(report.Findings[0].Evidence, "\n"); !strings.Contains(text, "2 processes waited") {
		t.Errorf("got %s, want 2 processes that waited", text)
	}
}

// isNamed reports whether a report begins with the fault and its culprit.
func (f seededFault) isNamed(r *diagnose.Report, culprit int, method string) bool {
	if len(r.Findings) == 0 {
		return false
	}
	first := r.Findings[0]
	if f.served != "" && method == "forkserver" {
		return first.Rule == f.served
	}
	return first.Rule == f.rule && first.PID == culprit
}

func TestExamine_IsSilentAboutHealthyPrograms(t *testing.T) {
	for _, python := range pythons(t) {
		for _, method := range methods() {
			for _, name := range healthyPrograms {
				t.Run(fmt.Sprintf("%s/%s/%s", environmentOf(python), method, name), func(t *testing.T) {
					_, pid, _ := start(t, python, "testdata/programs/healthy.py", name, method)
					for range 3 {
						report, err := diagnose.Examine(context.Background(), diagnose.Options{}, pid)
						if err != nil {
							t.Fatal(err)
						}
						if !report.Healthy() {
							t.Errorf("a healthy program was reported as faulty")
							report.Print(t.Output())
						}
					}
				})
			}
		}
	}
}

var (
	repeats = flag.Int("faults.runs", 0, "number of runs of each of the common faults and healthy programs, quiet and "+
		"as many beside busy loops; 0 runs none")
	loops = flag.Int("faults.loops", 4, "number of busy loops")
)

// maxExamination is the time within which an examination must have named the fault.
const maxExamination = 2 * time.Second

// A tally counts the examinations of a program.
type tally struct{ right, wrong, late int }

func (c *tally) String() string { return fmt.Sprintf("%d/%d/%d", c.right, c.wrong, c.late) }

// add counts one examination, which is late if it was right but took too long.
func (c *tally) add(right bool, took time.Duration) {
	switch {
	case !right:
		c.wrong++
	case took > maxExamination:
		c.late++
	default:
		c.right++
	}
}

// TestExamine_RepeatedRuns runs each of the common faults and healthy programs several times, quiet
// and beside busy loops, and prints a table. The runs take turns with the interpreters and the
// start methods.
func TestExamine_RepeatedRuns(t *testing.T) {
	if *repeats == 0 {
		t.Skip("-faults.runs is 0")
	}
	all := pythons(t)
	counts := make(map[string]*[2]tally)
	var order []string
	type examination func(t *testing.T, python, method string) (right bool, took time.Duration)
	run := func(t *testing.T, name string, busy int, examine examination, only string) {
		if counts[name] == nil {
			counts[name] = new([2]tally)
			order = append(order, name)
		}
		for n := range *repeats {
			python, method := all[n/len(methods())%len(all)], methods()[n%len(methods())]
			if only != "" {
				method = only
			}
			ran, right, took := false, false, time.Duration(0)
			t.Run(fmt.Sprintf("%s/%s/%s/%d", name, environmentOf(python), method, n), func(t *testing.T) {
				ran = true // it is selected by -run
				right, took = examine(t, python, method)
				if !right || took > maxExamination {
					t.Errorf("right: %v, in %v", right, took)
				}
			})
			if ran {
				counts[name][busy].add(right, took)
			}
		}
	}
	for busy, name := range []string{"quiet", "busy"} {
		t.Run(name, func(t *testing.T) {
			if busy == 1 {
				startLoops(t, *loops)
			}
			for _, f := range seededFaults[:commonFaults] {
				run(t, f.name, busy, func(t *testing.T, python, method string) (bool, time.Duration) {
					report, culprit, took := f.examine(t, python, method)
					right := f.isNamed(report, culprit, method)
					if !right {
						report.Print(t.Output())
					}
					return right, took
				}, f.method)
			}
			for _, name := range healthyPrograms[:commonFaults] {
				run(t, "healthy "+name, busy, func(t *testing.T, python, method string) (bool, time.Duration) {
					_, pid, _ := start(t, python, "testdata/programs/healthy.py", name, method)
					begin := time.Now()
					report, err := diagnose.Examine(context.Background(), diagnose.Options{}, pid)
					if err != nil {
						t.Fatal(err)
					}
					if !report.Healthy() {
						report.Print(t.Output())
					}
					return report.Healthy(), time.Since(begin)
				}, "")
			}
		})
	}
	fmt.Printf("%-32s %-12s %s\n", "right/wrong/late", "quiet", "beside busy loops")
	for _, name := range order {
		fmt.Printf("%-32s %-12v %v\n", name, &counts[name][0], &counts[name][1])
	}
}

// startLoops starts busy loops, which end with the test.
func startLoops(t *testing.T, n int) {
	for range n {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
}
