package parquet

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	writer "github.com/parquet-go/parquet-go"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/sys"
)

// TestSet_SpillsOnlyReadsInNoOrder checks that rows go to the spill file if they are read in no
// order and do not fit into memory, that each row group is then decoded once, and that the bounds
// hold.
func TestSet_SpillsOnlyReadsInNoOrder(t *testing.T) {
	type line struct {
		IDs []int64 `parquet:"ids,list"`
	}
	const rows, cached = 20_000, 200_000
	lines := make([]line, rows)
	for i := range lines {
		for k := range 50 {
			lines[i].IDs = append(lines[i].IDs, int64(i+k))
		}
	}
	path := filepath.Join(t.TempDir(), "ids.parquet")
	if err := writer.WriteFile(path, lines, writer.MaxRowsPerRowGroup(rows/2)); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large.parquet") // of few rows
	lines = lines[:300]
	for i := range lines {
		lines[i].IDs = slices.Repeat([]int64{1 << 40, int64(i)}, 1000)
	}
	if err := writer.WriteFile(large, lines); err != nil {
		t.Fatal(err)
	}
	shuffled := rand.New(rand.NewPCG(1, 2)).Perm(rows)
	inOrder := make([]int, 2*rows) // two epochs
	for i := range inOrder {
		inOrder[i] = i % rows
	}
	for name, c := range map[string]struct {
		options Options
		order   []int
		low     int64 // the least and the most bytes that are spilled
		high    int64
	}{
		"in order":           {Options{Cache: cached}, inOrder, 0, 0},
		"shuffled":           {Options{Cache: cached}, shuffled, rows * 50, rows * 50 * 4},
		"shuffled in memory": {Options{}, shuffled, 0, 0},
		"large rows": {Options{Cache: cached}, rand.New(rand.NewPCG(1, 2)).Perm(300), 300 * 10_000,
			300 * 20_000},
		"no file":      {Options{Cache: cached, Spill: -1}, shuffled[:100], 0, 0},
		"a small file": {Options{Cache: cached, Spill: 300_000}, shuffled[:100], 1, 300_000},
	} {
		file := path
		if name == "large rows" {
			file = large
		}
		opened, err := Open(c.options, file)
		if err != nil {
			t.Fatal(err)
		}
		s := opened.(*set)
		for _, i := range c.order {
			if _, err := data.Value(t.Context(), s, i); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got := s.cache.spill.end; got < c.low || got > c.high {
			t.Errorf("%s: %d bytes were spilled, want %d to %d", name, got, c.low, c.high)
		}
		held := 0
		for e := s.cache.used.Front(); e != nil; e = e.Next() {
			held += e.Value.(*place).block.size()
		}
		if room := cmp.Or(c.options.Cache, 64<<20); held > room {
			t.Errorf("%s: %d bytes are in memory, want at most %d", name, held, room)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSet_SurvivesADamagedSpillFile checks that rows from a spill file that was cut short, that
// cannot be mapped, or that is closed are right or errors, and do not end the process.
func TestSet_SurvivesADamagedSpillFile(t *testing.T) {
	type line struct{ Text string }
	lines := make([]line, 5_000)
	for i := range lines {
		lines[i].Text = fmt.Sprintf("row %d %s", i, strings.Repeat("x", 200))
	}
	path := filepath.Join(t.TempDir(), "text.parquet")
	if err := writer.WriteFile(path, lines); err != nil {
		t.Fatal(err)
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(lines))
	open := func() *set {
		opened, err := Open(Options{Cache: 1}, path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { opened.Close() })
		for _, i := range order[:10] {
			if _, err := data.Value(t.Context(), opened, i); err != nil {
				t.Fatal(err)
			}
		}
		return opened.(*set)
	}
	readAll := func(s *set) (failed int) {
		for _, i := range order {
			v, err := data.Value(t.Context(), s, i)
			if err != nil {
				if !errors.Is(err, ErrFormat) && !errors.Is(err, os.ErrClosed) {
					t.Fatalf("row %d: %v", i, err)
				}
				failed++
			} else if got := v.(map[string]any)["Text"]; got != lines[i].Text {
				t.Fatalf("row %d is %q", i, got)
			}
		}
		return failed
	}

	mapped := open()
	if runtime.GOOS == "linux" && mapped.cache.spill.view == nil {
		t.Error("the spill file is not mapped")
	}
	if failed := readAll(mapped); failed != 0 {
		t.Errorf("%d rows failed", failed)
	}
	if err := mapped.cache.spill.file.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	if failed := readAll(mapped); failed < len(lines)/2 {
		t.Errorf("%d of %d rows failed with a truncated file", failed, len(lines))
	}
	mapped.cache.spill.close()
	if failed := readAll(mapped); failed < len(lines)/2 {
		t.Errorf("%d of %d rows failed with a closed file", failed, len(lines))
	}

	read := open()
	if view := read.cache.spill.view; view != nil {
		sys.Unmap(view)
		read.cache.spill.view = nil
	}
	if failed := readAll(read); failed != 0 {
		t.Errorf("%d rows failed without a mapping", failed)
	}
}
