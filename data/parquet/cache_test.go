package parquet

import (
	"cmp"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	writer "github.com/parquet-go/parquet-go"

	"github.com/shoal-mp/shoal/data"
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
