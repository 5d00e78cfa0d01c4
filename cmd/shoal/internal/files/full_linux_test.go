package files

import (
	stdbytes "bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/tensor"
)

const fullEnv = "SHOAL_FILES_TEST_FULL_DISK"

// A disk that is full is an error that says so; what was there stays, and nothing else is left.
func TestFullDisk_LeavesWhatWasThere(t *testing.T) {
	if testing.Short() {
		t.Skip("an emulator is not in the namespaces")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestFullDisk_Inside$",
		"-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), fullEnv+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
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

// TestFullDisk_Inside is what runs with a disk of its own.
func TestFullDisk_Inside(t *testing.T) {
	dir := os.Getenv(fullEnv)
	if dir == "" {
		t.Skip("only for TestFullDisk_LeavesWhatWasThere")
	}
	if err := errors.Join(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k")); err != nil {
		t.Skipf("nothing can be mounted: %v", err)
	}
	small := Content{Tensors: Tensors{"x": tensor.Ones(tensor.Float32, 10)}}
	large := Content{Tensors: Tensors{"x": tensor.Ones(tensor.Float32, 1<<18)}}
	from := filepath.Join(t.TempDir(), "large.safetensors")
	if _, err := saveSafetensors(from, large); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x.pt", "x.safetensors", "x.npy", "x.npz", "x.h5", "x.msgpack"} {
		f, err := Of(name)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if _, err := f.Save(path, small); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		was := contents(t, dir)
		_, err = f.Save(path, large)
		full(t, "save "+name, err)
		full(t, "convert to "+name, Convert(context.Background(), io.Discard, io.Discard, from, path, Options{}))
		if now := contents(t, dir); !stdbytes.Equal(was, now) {
			t.Errorf("%s: the disk had %.200q, and has %.200q", name, was, now)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	index := filepath.Join(dir, "y.safetensors.index.json")
	_, err := saveSafetensors(index, large)
	full(t, "save shards", err)
	if left := contents(t, dir); len(left) > 0 {
		t.Errorf("shards leave %.200q", left)
	}
	appended(t, filepath.Join(dir, "grows.h5"))
}

// full wants the error of a full disk, with the file's path.
func full(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("%s: %v", what, err)
	}
}

// contents returns the names and bytes of all files of a folder.
func contents(t *testing.T, dir string) (all []byte) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, f.Name()...), b...)
	}
	return all
}

// appended fills the disk by rows of a file that grows: it stays a file with the rows from before.
func appended(t *testing.T, path string) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := hdf5.Create(path)
	check(err)
	d, err := w.Dataset("rows", tensor.Float32, []int{0, 8}, hdf5.Options{MaxShape: []int{hdf5.Unlimited, 8}})
	check(err)
	check(d.Append(pattern(tensor.Float32, 5, 8)))
	check(w.Close())
	w, err = hdf5.Append(path)
	check(err)
	d, err = w.Open("rows")
	check(err)
	err = d.Append(tensor.Ones(tensor.Float32, 1<<15, 8))
	full(t, "append", errors.Join(err, w.Close()))
	f, err := hdf5.Open(path)
	check(err)
	defer f.Close()
	r, err := f.Dataset("rows")
	check(err)
	x, err := r.Read()
	check(err)
	if x.Dim(0) < 5 || !stdbytes.Equal(tensor.Bytes(x.Narrow(0, 0, 5)), tensor.Bytes(pattern(tensor.Float32, 5, 8))) {
		t.Errorf("after a full disk the file has %v", x)
	}
}
