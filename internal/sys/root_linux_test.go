package sys

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// The files of the machine are read as package os reads them, whatever their length.
func TestRootFS_ReadsWhatIsThere(t *testing.T) {
	root := rootFS()
	dir := strings.TrimPrefix(t.TempDir(), "/")
	for _, n := range []int{0, 1, 4095, 4096, 4097, 100_000} {
		want := bytes.Repeat([]byte("0123456789"), n/10+1)[:n]
		name := filepath.Join(dir, "file")
		if err := os.WriteFile("/"+name, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := fs.ReadFile(root, name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("a file of %d bytes: %d bytes, %v", n, len(got), err)
		}
	}
	for name, want := range map[string]error{filepath.Join(dir, "none"): fs.ErrNotExist, "/proc/stat": fs.ErrInvalid,
		"proc/../stat": fs.ErrInvalid} {
		var at *fs.PathError
		if _, err := fs.ReadFile(root, name); !errors.Is(err, want) || !errors.As(err, &at) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if b, err := fs.ReadFile(root, dir); err == nil {
		t.Errorf("a folder has %d bytes", len(b))
	}
	sub, err := fs.Sub(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(sub, "file"); err != nil {
		t.Error(err)
	}
}

// The table of this process is what its files say.
func TestKeysOf_OfAProcess(t *testing.T) {
	status := "Name:\tproc (1) 5\nState:\tS (sleeping)\nVmHWM:\t   10 kB\nSigQ:\t3/96\nCpus_allowed_list:\t0-1\n" +
		"voluntary_ctxt_switches:\t150\n\nnonvoluntary_ctxt_switches:\t7\n"
	got := make(map[string]int64)
	for key, n := range keysOf([]byte(status)) {
		got[key] = n
	}
	if len(got) != 3 || got["VmHWM:"] != 10 || got["voluntary_ctxt_switches:"] != 150 ||
		got["nonvoluntary_ctxt_switches:"] != 7 {
		t.Errorf("%v", got)
	}
}
