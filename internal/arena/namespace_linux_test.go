package arena_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/test/testutil"
)

const namespaceEnv = "SHOAL_SHM_TEST_NAMESPACES"

// Strangers meet where there is no network, no process but theirs, and a /dev/shm from which
// everything is removed all the time.
func TestJoin_FromAnotherNamespaceIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("an emulator is not in the namespaces")
	}
	cmd := exec.CommandContext(testutil.Context(t), "/proc/self/exe", "-test.run=^TestJoin_StrangersComeGoAndDie$",
		"-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), namespaceEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.Process == nil:
		t.Skipf("this system gives no namespaces: %v", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	case err != nil || !strings.Contains(string(out), "--- PASS"):
		t.Errorf("%v\n%s", err, out)
	}
}

// TestJoin_StrangersComeGoAndDie is what runs in them.
func TestJoin_StrangersComeGoAndDie(t *testing.T) {
	if os.Getenv(namespaceEnv) == "" {
		t.Skip("only for TestJoin_FromAnotherNamespaceIsRefused")
	}
	err := errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("proc", "/proc", "proc", 0, ""),
		syscall.Mount("tmpfs", "/dev/shm", "tmpfs", 0, ""))
	if err != nil {
		t.Skipf("nothing can be mounted: %v", err)
	}
	remove := func() {
		testutil.NoError(t, os.WriteFile("/dev/shm/somebody's", nil, 0o600))
		names, err := filepath.Glob("/dev/shm/*")
		testutil.NoError(t, err)
		if len(names) != 1 {
			t.Errorf("there is %q", names)
		}
		for _, name := range names {
			testutil.NoError(t, os.RemoveAll(name))
		}
	}
	d := newDomain(t, 16<<20)
	l := listen(t, d, "")
	h := alloc(t, d, 4096, "for you\x00")
	random := rand.New(rand.NewPCG(9, 9))
	var here []*actor
	died := 0
	for range 24 {
		remove()
		i := random.IntN(len(here) + 2)
		if i >= len(here) {
			a := start(t, nil, "stranger", l.Addr(), tokenText(l.Token()), argOf(h))
			if s := a.hear(); s != "for you" {
				t.Errorf("a stranger read %q", s)
			}
			here = append(here, a)
			continue
		}
		if random.IntN(2) == 0 {
			here[i].kill()
			died++
		} else {
			here[i].finish()
		}
		here = append(here[:i], here[i+1:]...)
	}
	for _, a := range here {
		a.kill()
	}
	died += len(here)
	testutil.Eventually(t, func() bool { return d.Stats().Reaped == died }, "%d have died and are not reaped", died)
	untilReaped(t, d)
	testutil.NoError(t, d.Release(h))
	wantRest(t, d, 0)
	remove()
}
