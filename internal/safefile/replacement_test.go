package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What a program that ends has not finished is gone, and takes nobody's place afterwards; what it
// has finished stays.
func TestDiscardAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	if err := Replace(path, func(f *os.File) error { _, err := f.WriteString("old"); return err }); err != nil {
		t.Fatal(err)
	}
	f, err := NewReplacement(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("new"); err != nil {
		t.Fatal(err)
	}
	DiscardReplacements()
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

// A write that panics leaves nothing, neither a descriptor nor a file.
func TestWrite_ThatPanicsIsDiscarded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	var written *os.File
	func() {
		defer func() { recover() }()
		Replace(path, func(f *os.File) error { written = f; panic("the encoder fails") })
	}()
	if err := written.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is open: %v", err)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}
