package torch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// otherSpace is a PID space that no process has.
const otherSpace = "0123456789abcdef"

func TestParseOwner(t *testing.T) {
	name := testutil.Value(freshName())(t)
	o, ok := parseOwner(strings.TrimPrefix(name, "/"))
	if !ok || o.pid != os.Getpid() || !o.isLocal() || o.hasEnded() {
		t.Errorf("%s: %+v, %t", name, o, ok)
	}
	o, ok = parseOwner(testutil.Value(endedOwner())(t))
	if !ok || !o.hasEnded() {
		t.Errorf("ended: %+v, %t", o, ok)
	}
	for _, bad := range []string{"", namePrefix, "shoal_1_2_3", "shoal_1_2_ab_3_4", "shoal_x_2_ab_3", "torch_1_2_ab_3"} {
		if o, ok := parseOwner(bad); ok {
			t.Errorf("%q: %+v", bad, o)
		}
	}
}

// TestSweep_OfAnotherPIDSpace: a process there is never looked up by its pid. Its shared memory
// is removed when the kernel has released its lock.
func TestSweep_OfAnotherPIDSpace(t *testing.T) {
	old := time.Now().Add(-2 * lockGrace)
	for name, c := range map[string]struct {
		kind   string
		locked bool
		mtime  time.Time
		stays  bool
	}{
		"region, living owner":   {locked: true, mtime: old, stays: true},
		"region, ended owner":    {mtime: old},
		"region, not yet locked": {mtime: time.Now(), stays: true},
		"semaphore":              {kind: semaphorePrefix, mtime: old, stays: true},
	} {
		path := fmt.Sprintf("%s/%s%s4194303_1_%s_%d", shmDir, c.kind, namePrefix, otherSpace, names.Add(1))
		f := testutil.Value(os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600))(t)
		defer os.Remove(path)
		defer f.Close()
		if c.locked {
			testutil.Value(sys.LockByte(f, ownerLock))(t)
		}
		testutil.NoError(t, os.Chtimes(path, c.mtime, c.mtime))
		sweepShared()
		if _, err := os.Stat(path); (err == nil) != c.stays {
			t.Errorf("%s: %v, and it should stay: %t", name, err, c.stays)
		}
	}
	parent := t.TempDir()
	mark := fmt.Sprintf("%s4194303_1_%s_0", namePrefix, otherSpace)
	for _, dir := range []string{tempPrefix + mark + "-a", tempPrefix + "b/" + mark} {
		testutil.NoError(t, os.MkdirAll(filepath.Join(parent, dir), 0o700))
		sweepTempDirs(parent)
		if _, err := os.Stat(filepath.Join(parent, dir)); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// ownerEnv names the directory of a process that creates a region, a semaphore and a directory,
// sweeps, and prints their paths. It ends when its standard input does.
const ownerEnv = "SHOAL_TORCH_TEST_OWNER"

func init() {
	parent := os.Getenv(ownerEnv)
	if parent == "" {
		return
	}
	fail := func(err error) {
		if err != nil {
			fmt.Println("FAIL", err)
			os.Exit(1)
		}
	}
	err := errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("proc", "/proc", "proc", 0, ""))
	if err != nil {
		fmt.Println("SKIP", err)
		os.Exit(0)
	}
	x, err := Options{Strategy: FileSystem}.Empty(tensor.Float32, 1)
	fail(err)
	lock, err := NewLock()
	fail(err)
	d := newTempDir([]string{"TMPDIR=" + parent})
	sweepShared()
	sweepTempDirs(parent)
	fmt.Println(shmDir+regionName(x), semaphorePath(lock.(*semaphore).name), d.path)
	io.Copy(io.Discard, os.Stdin)
	d.release()
	fail(errors.Join(lock.Close(), x.Close(), Trim()))
	os.Exit(0)
}

// regionName returns the name of a tensor's region.
func regionName(x *tensor.Tensor) string {
	regions.mu.Lock()
	defer regions.mu.Unlock()
	for _, r := range regions.byID {
		if s := r.storage.Value(); s != nil && s == x.Storage() {
			return r.name
		}
	}
	return ""
}

// TestSweep_OfProcessesInOtherPIDNamespaces: two programs in two PID namespaces share /dev/shm and
// a directory with this one. Both, and this one, sweep; each keeps its files.
func TestSweep_OfProcessesInOtherPIDNamespaces(t *testing.T) {
	parent := t.TempDir()
	var all []string
	for i := range 2 {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
		cmd.Env = append(os.Environ(), ownerEnv+"="+parent)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		in := testutil.Value(cmd.StdinPipe())(t)
		out := testutil.Value(cmd.StdoutPipe())(t)
		if err := cmd.Start(); errors.Is(err, fs.ErrPermission) {
			t.Skip("this user may not make PID namespaces:", err)
		} else if err != nil {
			t.Fatal(err)
		}
		defer func() {
			in.Close()
			testutil.NoError(t, cmd.Wait())
		}()
		line := testutil.Value(bufio.NewReader(out).ReadString('\n'))(t)
		if strings.HasPrefix(line, "SKIP") {
			t.Skip(line)
		}
		paths := strings.Fields(line)
		if len(paths) != 3 {
			t.Fatalf("program %d: %s", i, line)
		}
		all = append(all, paths...)
	}
	sweepShared()
	sweepTempDirs(parent)
	for _, path := range all {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}
