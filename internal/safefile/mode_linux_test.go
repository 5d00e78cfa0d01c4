package safefile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A new file has the mode that os.Create gives, under any umask; one that takes the place of
// another has that one's.
func TestModes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	put := func(want fs.FileMode) {
		t.Helper()
		if err := Replace(path, func(f *os.File) error { _, err := f.WriteString("it"); return err }); err != nil {
			t.Fatal(err)
		}
		if s, err := os.Stat(path); err != nil || s.Mode() != want {
			t.Errorf("%v, want %v: %v", s.Mode(), want, err)
		}
	}
	for umask, want := range map[int]fs.FileMode{0o022: 0o644, 0o027: 0o640, 0o077: 0o600, 0: 0o666} {
		before := syscall.Umask(umask)
		put(want)
		syscall.Umask(before)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	put(0o666 &^ currentUmask())
	for _, mode := range []fs.FileMode{0o600, 0o664, 0o400} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		put(mode)
	}
}

func currentUmask() fs.FileMode {
	was := syscall.Umask(0)
	syscall.Umask(was)
	return fs.FileMode(was)
}
