package diagnose_test

import (
	"bufio"
	"context"
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

// A seededFault is a program in testdata/faults with the rule that must find its fault.
type seededFault struct {
	name   string
	rule   string
	method string // the only start method with which the fault can occur; "" means all
	served string // rule for forkserver, which reaps the culprit at once; another process is then named
	needs  string // control group of version 1, or "mount"
	plain  bool   // any Python can run it
}

var seededFaults = []seededFault{
	{name: "killed_worker", rule: "worker-killed", served: "waits-for-ended", plain: true},
	{name: "out_of_memory", rule: "worker-out-of-memory", served: "waits-for-ended", needs: "memory"},
	{name: "stopped_worker", rule: "stopped"},
	{name: "full_shm", rule: "shm-full", needs: "mount"},
	{name: "descriptors", rule: "descriptors"},
	{name: "fork_lock", rule: "fork-with-threads", method: "fork"},
	{name: "dead_holder", rule: "lock-held-by-dead", served: "lock-held-by-dead", plain: true},
	{name: "dead_pin_thread", rule: "pin-thread-dead"},
	{name: "slow_consumer", rule: "slow-consumer"},
	{name: "join_before_drain", rule: "join-before-drain", plain: true},
	{name: "leaked_names", rule: "leaked-names"},
	{name: "orphan", rule: "orphan", plain: true},
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
}

var healthyPrograms = strings.Fields(`fast_loader slow_loader slow_computing_loader one_worker
	compute_bound large_batches short_epochs stream no_workers pool pipeline fan_out ping_pong
	long_critical_section idle_workers join_in_order manager hogwild ddp ddp_slow_rank file_system threads
	idle_pool slow_pool lazy_pool executor servers between_epochs joined_queue consumer_group`)

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
// named semaphores of spawned processes.
func mappedNames(group int) (names []string) {
	maps, _ := filepath.Glob("/proc/[0-9]*/maps")
	for _, path := range maps {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if of, err := syscall.Getpgid(pid); err != nil || of != group {
			continue
		}
		text, _ := os.ReadFile(path)
		for _, line := range strings.Split(string(text), "\n") {
			if at := strings.Index(line, "/dev/shm/"); at >= 0 && !strings.HasSuffix(line, " (deleted)") {
				names = append(names, line[at:])
			}
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
			name := fmt.Sprintf("%s/%s/%s", filepath.Base(filepath.Dir(filepath.Dir(python))), method, f.name)
			t.Run(name, func(t *testing.T) {
				skipWithout(t, f.needs)
				args := []string{python, "testdata/faults/" + f.name + ".py", method}
				if f.needs == "mount" {
					args = append([]string{"unshare", "-m", "sh", "-c",
						`mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"`, "sh"}, args...)
				}
				cmd, pid, culprit := start(t, args...)
				if f.name == "leaked_names" || f.name == "orphan" {
					cmd.Process.Wait() // the program kills itself
				}
				report, err := diagnose.Examine(context.Background(), diagnose.Options{}, pid)
				if err != nil {
					t.Fatal(err)
				}
				if f.served != "" && method == "forkserver" {
					if len(report.Findings) == 0 || report.Findings[0].Rule != f.served {
						t.Errorf("want %s first", f.served)
						report.Print(t.Output())
					}
					return
				}
				if f0 := report.Findings; len(f0) == 0 || f0[0].Rule != f.rule || f0[0].PID != culprit {
					t.Errorf("want %s of process %d first", f.rule, culprit)
					report.Print(t.Output())
				} else if got := generalize(report.Verdict); !slices.Contains(page[f.rule], got) {
					t.Errorf("docs/doctor.md has for %s the verdicts\n%s\nwant\n%s", f.rule,
						strings.Join(page[f.rule], "\n"), got)
				}
			})
		}
	}
}

func TestExamine_IsSilentAboutHealthyPrograms(t *testing.T) {
	for _, python := range pythons(t) {
		for _, method := range methods() {
			for _, name := range healthyPrograms {
				environment := filepath.Base(filepath.Dir(filepath.Dir(python)))
				t.Run(fmt.Sprintf("%s/%s/%s", environment, method, name), func(t *testing.T) {
					_, pid, _ := start(t, python, "testdata/healthy/healthy.py", name, method)
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
