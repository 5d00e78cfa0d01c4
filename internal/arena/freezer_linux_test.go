package arena_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A freezer is how one version of control groups freezes the processes of a group.
type freezer struct {
	name         string
	tops         []string // where its groups may be
	file         string
	freeze, thaw string
}

var freezers = []freezer{
	{"version 1", []string{"/sys/fs/cgroup/freezer"}, "freezer.state", "FROZEN", "THAWED"},
	{"version 2", []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}, "cgroup.freeze", "1", "0"},
}

// group makes a group with the process in it, or skips the test where that is not possible: as
// another user than root, and in most containers. It returns the file that freezes the group.
func (f freezer) group(t *testing.T, pid int) string {
	t.Helper()
	for _, top := range f.tops {
		dir := filepath.Join(top, fmt.Sprintf("shoal-test-%d-%d", os.Getpid(), pid))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			for range 1000 { // until the kernel has noticed that its process is gone
				if os.Remove(dir) == nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		file := filepath.Join(dir, f.file)
		if _, err := os.Stat(file); err != nil {
			continue
		}
		testutil.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
		return file
	}
	t.Skipf("no control group of %s can be frozen here: it takes root and a writable %s", f.name, f.tops[0])
	return ""
}

// The watcher of a process is in a frozen control group, and the process is killed. The state of a
// frozen process does not say that it is stopped.
func TestStop_InAFrozenControlGroupHidesNoDeath(t *testing.T) {
	for _, f := range freezers {
		t.Run(f.name, func(t *testing.T) {
			d := newDomain(t, 32<<20)
			parent := start(t, d, "hold")
			parent.hear()
			child := start(t, d, "hold")
			child.hear()
			pid := parent.cmd.Process.Pid
			file := f.group(t, pid)
			testutil.NoError(t, os.WriteFile(file, []byte(f.freeze), 0))
			thaw := func() { testutil.NoError(t, os.WriteFile(file, []byte(f.thaw), 0)) }
			defer func() { // a frozen process does not end, and a group with a process does not go
				thaw()
				parent.kill()
			}()
			testutil.Eventually(t, func() bool { return sys.Stopped(pid) }, "the parent is not seen to be frozen")
			child.kill()
			untilReaped(t, d)
			if !sys.Stopped(pid) {
				t.Error("the parent goes on, and should be frozen")
			}
			thaw()
			testutil.Eventually(t, func() bool { return !sys.Stopped(pid) }, "the parent does not go on")
		})
	}
}
