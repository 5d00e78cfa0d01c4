package shoal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/test/testutil"
)

// stamp leaves a file whose name is this process's id and whose text is the time.
func stamp(dir string) error {
	now := time.Now().UnixNano()
	return writeWhole(filepath.Join(dir, strconv.Itoa(os.Getpid())), strconv.FormatInt(now, 10))
}

// writeWhole makes a file that nobody sees half written.
func writeWhole(name, text string) error {
	if err := os.WriteFile(name+".new", []byte(text), 0o666); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// stamps reads them.
func stamps(t testing.TB, dir string) map[int]time.Time {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[int]time.Time)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		ns, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all[pid] = time.Unix(0, ns)
	}
	return all
}

// send sends a signal to any process.
func send(pid int, sig os.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Signal(sig)
}

// alive reports whether pid is a process that has not ended. A zombie has.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// untilGone returns how long it took until none of pids was alive.
func untilGone(t *testing.T, pids ...int) time.Duration {
	t.Helper()
	begin := time.Now()
	for _, pid := range pids {
		// it is no child of this process, so there is no event to wait for
		testutil.Eventually(t, func() bool { return !alive(pid) }, "process %d is still alive", pid)
	}
	return time.Since(begin)
}

// openFiles lists what this process has open.
func openFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasSuffix(to, "/fd") {
			all = append(all, e.Name()+" "+to)
		}
	}
	return all
}
