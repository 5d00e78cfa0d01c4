package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFile_IsValidAfterEveryWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	f, err := createFile(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	events := func() (n int) {
		t.Helper()
		b, err := os.ReadFile(path)
		var all []event
		if err := errors.Join(err, json.Unmarshal(b, &all)); err != nil {
			t.Fatalf("after %d events: %v", f.events, err)
		}
		return len(all)
	}
	if n := events(); n != 0 {
		t.Fatalf("%d events in a new file", n)
	}
	size := f.size
	for i := range 3000 { // two pages are full, and the file grows twice
		name := strings.Repeat("é\"\x01", i%70)
		s := span{1, shortenName(name), int64(i * 1000), int64(i*1000 + 500)}
		err := f.writeLetter(letter{PID: 1, Process: "p", Spans: []span{s}})
		if err != nil {
			t.Fatal(err)
		}
		if was := size; i > 60 && i%101 != 0 && f.size == was { // reading all takes its time
			continue
		}
		size = f.size
		if n := events(); n != f.events || n != i+2 {
			t.Fatalf("%d events in the file, %d were written, want %d", n, f.events, i+2)
		}
	}
	if f.size < 4*first {
		t.Errorf("%d bytes: it did not grow", f.size)
	}
	if err := f.finishFile(); err != nil {
		t.Fatal(err)
	}
	if n := events(); n != 3001 {
		t.Errorf("%d events at the end", n)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != f.at+int64(len(closing)) {
		t.Errorf("%v, %v: blanks are left", info, err)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

// A write that crosses a page could be cut by a kill.
func TestFile_NoWriteCrossesAPage(t *testing.T) {
	f, err := createFile(filepath.Join(t.TempDir(), "t.json"), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		if err := f.addEvent(event{Name: fmt.Sprint(i, strings.Repeat("x", i%190)), Phase: "X"}); err != nil {
			t.Fatal(err)
		}
		if n := int64(len(f.page)); f.at/page != (f.at+n-1)/page {
			t.Fatalf("event %d: a write of %d bytes at %d", i, n, f.at)
		}
	}
	if err := errors.Join(f.flushPage(), f.finishFile()); err != nil {
		t.Fatal(err)
	}
}

// Events that end where a page does are followed by one of the next page, for which there may be no
// room yet.
func TestFile_GrowsBehindAPageThatIsFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	f, err := createFile(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * first / 64 { // of 64 bytes each, but for the first two
		e := event{Phase: "X"}
		bare, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		e.Name = strings.Repeat("x", 64-len(",\n")-len(bare))
		if i == 0 {
			e.Name = e.Name[:len(e.Name)-1] // it has no comma, and the file begins with two bytes
		}
		if err := errors.Join(f.addEvent(e), f.flushPage()); err != nil {
			t.Fatal(err)
		}
		if f.at%64 != 0 {
			t.Fatalf("event %d ends at %d", i, f.at)
		}
		if f.at%page != 0 {
			continue
		}
		b, err := os.ReadFile(path)
		var all []event
		if err := errors.Join(err, json.Unmarshal(b, &all)); err != nil || len(all) != i+1 {
			t.Fatalf("%d events of %d, %v", len(all), i+1, err)
		}
	}
	if err := f.finishFile(); err != nil {
		t.Fatal(err)
	}
}

func TestMicro(t *testing.T) {
	for ns, want := range map[int64]string{0: "0.000", 1: "0.001", 1_500: "1.500", -1: "-0.001", -2_000_001: "-2000.001"} {
		if got := formatMicros(ns); got.String() != want {
			t.Errorf("%d ns are %s µs, want %s", ns, got, want)
		}
	}
}
