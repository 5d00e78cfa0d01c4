package sys_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

func fixture(files map[string]string) fstest.MapFS {
	root := make(fstest.MapFS)
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func TestMachineTimeAddsUpTheFirstLine(t *testing.T) {
	root := fixture(map[string]string{"proc/stat": "cpu  100 20 30 4000 500 6 7 8 99 99\ncpu0 1 2 3\ncpu1 1 2 3\ncpufreq 1\nintr 5\n"})
	got := testutil.Value(sys.MachineTimeIn(root))(t)
	if got != (sys.CPUTime{Busy: 1710 * time.Millisecond, Idle: 45 * time.Second}) {
		t.Errorf("%+v", got)
	}
	if n := sys.MachineCPUsIn(root); n != 2 {
		t.Errorf("%d processors, want 2", n)
	}
	for _, bad := range []string{"", "cpu 1 2", "cpu  a b c d e f g h", "intr 1 2 3 4 5 6 7 8"} {
		root := fixture(map[string]string{"proc/stat": bad})
		if got, err := sys.MachineTimeIn(root); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
		if n := sys.MachineCPUsIn(root); n != 1 {
			t.Errorf("%q: %d processors, want 1 at least", bad, n)
		}
	}
}

func TestQuotaIsAFraction(t *testing.T) {
	for quota, want := range map[string]float64{"150000 100000": 1.5, "max 100000": 0, "50000 100000": 0.5} {
		root := fixture(map[string]string{
			"proc/self/cgroup":        "0::/a\n",
			"proc/self/mountinfo":     "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/a/cpu.max": quota,
		})
		if got := sys.QuotaCPUsIn(root); got != want {
			t.Errorf("%q: %v, want %v", quota, got, want)
		}
	}
}

func TestProcessLoad(t *testing.T) {
	stat := "7 (a) b) R 1 7 7 0 -1 0 0 0 0 0 250 50 0 0 20 0 3 0 777 0 0"
	root := fixture(map[string]string{
		"proc/7/stat": stat, "proc/7/task/7/stat": stat, "proc/7/task/8/stat": "8 (a) b) S 1",
		"proc/7/task/9/stat": "9 (R) R 1",
	})
	got := testutil.Value(sys.ProcessLoadIn(root, 7))(t)
	if got != (sys.Load{CPU: 3 * time.Second, Threads: 3, Runnable: 2}) {
		t.Errorf("%+v", got)
	}
	if _, err := sys.ProcessLoadIn(root, 8); err == nil {
		t.Error("a process that is not there has a load")
	}
	now := testutil.Value(sys.ProcessLoad(os.Getpid()))(t)
	if now.Threads < 1 || now.Runnable < 1 { // this thread runs
		t.Errorf("%+v", now)
	}
}

func TestProcessTableHasTheProcessAndItsChild(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	// an emulator of a processor says of this process that it has no threads
	table := testutil.Value(sys.ProcessTable())(t)
	me, child := table[os.Getpid()], table[cmd.Process.Pid]
	if me.Parent != os.Getppid() || me.Start == 0 || child.Parent != os.Getpid() || child.Threads < 1 ||
		child.Start < me.Start || !strings.ContainsRune("RSD", rune(child.State)) {
		t.Errorf("this process %+v and its child %+v", me, child)
	}
	if name := testutil.Value(sys.ProcessName(os.Getpid()))(t); name == "" {
		t.Error("this process has no name")
	}
}

func TestNiceAndAffinityThatCannotBeSet(t *testing.T) {
	before := testutil.Value(sys.Nice())(t)
	if err := sys.SetNice(before); err != nil { // another one stays, without the privilege
		t.Errorf("to stay as it is: %v", err)
	}
	if after := testutil.Value(sys.Nice())(t); after != before {
		t.Errorf("niceness %d became %d", before, after)
	}
	if err := sys.SetAffinity(1 << 20); err == nil {
		t.Error("a processor that there is not")
	}
}

func TestProcessTimeOfAnotherProcess(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	spent := func() time.Duration { return testutil.Value(sys.ProcessTimeOf(cmd.Process.Pid))(t) }
	first, end := spent(), time.Now().Add(10*time.Second)
	for spent() <= first+time.Millisecond {
		if time.Now().After(end) {
			t.Fatal("a process that computes has no processor time")
		}
	}
	begin := sys.ProcessTime()
	if own := testutil.Value(sys.ProcessTimeOf(0))(t); own < begin || own > sys.ProcessTime() {
		t.Errorf("%v of this process, which had %v before", own, begin)
	}
	if got, err := sys.ProcessTimeOf(1 << 22); err == nil {
		t.Errorf("a process that is not: %v", got)
	}
}
