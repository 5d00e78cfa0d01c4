package replace

import (
	"os"
	"path/filepath"
	"testing"
)

// What a program that ends has not finished is gone, and takes nobody's place afterwards; what it
// has finished stays.
func TestDiscardAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	if err := Write(path, func(f *os.File) error { _, err := f.WriteString("old"); return err }); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("new"); err != nil {
		t.Fatal(err)
	}
	DiscardAll()
	if err := f.Commit(); err == nil {
		t.Error("a file that was discarded took its place")
	}
	if err := f.Discard(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if b, _ := os.ReadFile(path); err != nil || len(left) != 1 || string(b) != "old" {
		t.Errorf("%q in %v: %v", b, left, err)
	}
}
