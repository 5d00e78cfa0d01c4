package shoal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	_ "github.com/shoal-mp/shoal/ipc/tcp"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A numbered is a file of this module that has the number of a version.
type numbered struct {
	file   string
	number *regexp.Regexp
}

var (
	ofWorkers = numbered{"worker_env.go", regexp.MustCompile(`(workerEnvVersion = )(\d+)()`)}
	ofDomains = numbered{"internal/arena/layout/layout.go", regexp.MustCompile(`(ProtocolVersion = )(\d+)()`)}
	ofLinks   = numbered{"internal/link/handshake.go", regexp.MustCompile(`('L', )(\d+)(, 0})`)}
)

// buildOther builds testdata/other with versions that are as much newer as it says, and returns the
// program and, for each file, the version of this program.
func buildOther(t *testing.T, newer int, all ...numbered) (program string, ours map[numbered]int) {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	ours = map[numbered]int{}
	overlay := map[string]map[string]string{"Replace": {}}
	for i, n := range all {
		b, err := os.ReadFile(n.file)
		if err != nil {
			t.Fatal(err)
		}
		m := n.number.FindSubmatch(b)
		if m == nil {
			t.Fatalf("%s has no version", n.file)
		}
		ours[n], _ = strconv.Atoi(string(m[2]))
		b = n.number.ReplaceAll(b, fmt.Appendf(nil, "${1}%d${3}", ours[n]+newer))
		changed := filepath.Join(scratch, strconv.Itoa(i)+".go")
		if err := os.WriteFile(changed, b, 0o666); err != nil {
			t.Fatal(err)
		}
		overlay["Replace"][filepath.Join(dir, n.file)] = changed
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(scratch, "overlay"), b, 0o666); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(scratch, "other")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(scratch, "overlay"),
		"-o", program, "./testdata/other").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program, ours
}

// wantBoth fails unless a text names two versions.
func wantBoth(t *testing.T, what, text string, ours, theirs int) {
	t.Helper()
	for _, v := range []int{ours, theirs} {
		if !regexp.MustCompile(fmt.Sprintf(`version %d\b`, v)).MatchString(text) {
			t.Errorf("%s does not name version %d: %q", what, v, text)
		}
	}
}

// Builds of different versions, older and newer, refuse each other, and their errors name both.
func TestVersion_BuildsOfTwoVersionsRefuseEachOther(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds programs")
	}
	d, err := arena.Default()
	if err != nil {
		t.Fatal(err)
	}
	for name, newer := range map[string]int{"older": -1, "newer": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other, ours := buildOther(t, newer, ofWorkers, ofDomains, ofLinks)
			asWorker(t, other, ours[ofWorkers], newer)
			for _, addr := range []string{"@shoal-test-version-" + name + strconv.Itoa(os.Getpid()),
				"tcp://127.0.0.1:0"} {
				l, err := ipc.Listen[int](addr, []byte("key"))
				if err != nil {
					t.Fatal(err)
				}
				neverMeets(t, ours[ofLinks], newer, other, "dial", l.Addr())
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
			l, err := d.Listen(arena.ListenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			neverMeets(t, ours[ofDomains], newer, other, "join", l.Addr(), fmt.Sprintf("%x", l.Token()))
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		// Workers of one version that know another layout get further, and see it in the memory.
		t.Run(name+" memory", func(t *testing.T) {
			t.Parallel()
			other, ours := buildOther(t, newer, ofDomains)
			asWorker(t, other, ours[ofDomains], newer)
		})
	}
}

// neverMeets runs the other program, which must fail to meet this one.
func neverMeets(t *testing.T, ours, newer int, program string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(testutil.Context(t), program, args...).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "typed: true\n") {
		t.Errorf("%v: %v, %s", args, err, out)
	}
	wantBoth(t, args[0], string(out), ours, ours+newer)
}

// asWorker starts the other program as a worker, by every way.
func asWorker(t *testing.T, program string, ours, newer int) {
	t.Helper()
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart} {
		g, err := nothing.Start(testutil.Context(t), 1, struct{}{}, shoal.Options{Start: m, Executable: program})
		if err == nil {
			err = g.Wait()
		}
		if !errors.Is(err, arena.ErrVersion) {
			t.Errorf("%v: %v, want ErrVersion", m, err)
			continue
		}
		wantBoth(t, m.String(), err.Error(), ours, ours+newer)
	}
	err := shoal.Warm(testutil.Context(t), 1, shoal.Options{Executable: program})
	if !errors.Is(err, arena.ErrVersion) {
		t.Errorf("warm: %v, want ErrVersion", err)
		return
	}
	wantBoth(t, "warm", err.Error(), ours, ours+newer)
}
