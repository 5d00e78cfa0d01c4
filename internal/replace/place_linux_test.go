package replace

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
		f, err := Create(path)
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
	return Write(path, func(f *os.File) error { _, err := f.WriteString("new"); return err })
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
