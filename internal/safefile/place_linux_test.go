package safefile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("REPLACE_TEST_DIES"); path != "" {
		if os.Getenv("REPLACE_TEST_NAMED") != "" {
			openUnnamed = noneUnnamed
		}
		f, err := NewReplacement(path)
		if err != nil {
			os.Exit(1)
		}
		f.Write(make([]byte, 1<<20))
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	os.Exit(m.Run())
}

// A program that is killed in the middle leaves nothing, and what was there stays.
func TestCreate_AKilledProgramLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	probe, err := sys.OpenUnnamed(dir, "probe")
	if err != nil {
		t.Skip("this file system has no files without names: ", err)
	}
	probe.Close()
	path := filepath.Join(dir, "x")
	if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "REPLACE_TEST_DIES="+path)
		if err := cmd.Run(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("it was to be killed: %v", err)
		}
	}
	left, err := os.ReadDir(dir)
	if b, _ := os.ReadFile(path); err != nil || len(left) != 1 || string(b) != "old" {
		t.Errorf("%q in %v: %v", b, left, err)
	}
}

func put(path string) error {
	return Replace(path, func(f *os.File) error { _, err := f.WriteString("new"); return err })
}

func TestCreate_FollowsALinkAndReplacesNothingButFiles(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("old"), 0o600), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	if err := put(link); err != nil {
		t.Fatal(err)
	}
	to, err := os.Readlink(link)
	if b, _ := os.ReadFile(file); err != nil || to != "file" || string(b) != "new" {
		t.Errorf("the link leads to %q with %q: %v", to, b, err)
	}
	fifo, nowhere, loop := filepath.Join(dir, "fifo"), filepath.Join(dir, "nowhere"), filepath.Join(dir, "loop")
	err = errors.Join(syscall.Mkfifo(fifo, 0o600), os.Symlink("nothing", nowhere), os.Symlink("loop", loop))
	if err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadDir(dir)
	for _, path := range []string{fifo, nowhere, loop, dir} {
		was, _ := os.Lstat(path)
		if err := put(path); err == nil {
			t.Errorf("%s was replaced", path)
		}
		if is, err := os.Lstat(path); err != nil || !os.SameFile(was, is) {
			t.Errorf("%s is another one now: %v", path, err)
		}
	}
	if after, _ := os.ReadDir(dir); len(after) != len(before) {
		t.Errorf("%d entries, and there were %d", len(after), len(before))
	}
}

func noneUnnamed(string, string) (*os.File, error) { return nil, syscall.EOPNOTSUPP }

// killedAt has a program killed while it writes a file, which has a name from its beginning.
func killedAt(t *testing.T, path string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "REPLACE_TEST_NAMED=1", "REPLACE_TEST_DIES="+path)
	if err := cmd.Run(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("it was to be killed: %v", err)
	}
}

// What killed programs have left is gone once another one writes there. What looks alike stays:
// files that are being written, by this program or by another, and those that are something else.
func TestCreate_SweepsWhatKilledProgramsHaveLeft(t *testing.T) {
	dir := t.TempDir()
	probe, err := os.Create(filepath.Join(t.TempDir(), "probe"))
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	if !sys.Abandoned(probe) {
		t.Skip("this file system does not say whether a file is open elsewhere")
	}
	path := filepath.Join(dir, "x.npz")
	stay := []string{".x.npz.backup", ".x.npz.0123456789ABC", ".y.npz.0123456789abc", ".x.npz.0123456789abcd",
		"0.shoal-part"}
	for _, name := range append([]string{".x.npz.0123456789abc"}, stay...) { // the first by an older version
		if err := os.WriteFile(filepath.Join(dir, name), []byte("it"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".d.0123456789abc.shoal-part"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("0.shoal-part", filepath.Join(dir, ".l.0123456789abc.shoal-part")); err != nil {
		t.Fatal(err)
	}
	killedAt(t, path)
	killedAt(t, filepath.Join(dir, "another"))
	left := func() []string {
		names, _ := filepath.Glob(filepath.Join(dir, ".*.shoal-part"))
		return names
	}
	if n := len(left()); n != 2+1 { // the second program has swept what the first one had left
		t.Fatalf("%d hidden entries: %v", n, left())
	}
	defer func(was func(string, string) (*os.File, error)) { openUnnamed = was }(openUnnamed)
	openUnnamed = noneUnnamed
	mine, err := NewReplacement(filepath.Join(dir, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Discard()
	if n := len(left()); n != 2+1 {
		t.Errorf("%d hidden entries: %v", n, left())
	}
	swept.Clear()
	if err := put(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".x.npz.0123456789abc")); err == nil {
		t.Error("what an older version has left is still there")
	}
	for _, name := range stay {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := mine.Commit(); err != nil {
		t.Errorf("a file that was being written is lost: %v", err)
	}
}
