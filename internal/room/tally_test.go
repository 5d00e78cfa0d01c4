package room

import (
	"errors"
	"math"
	"testing"
)

func TestTally(t *testing.T) {
	for name, c := range map[string]struct {
		tally Tally
		add   []int64
		good  int // how many of them
	}{
		"little":                    {Tally{Fills: 10}, []int64{Always / 2, Always / 2}, 2},
		"more than the file has":    {Tally{Fills: 10}, []int64{Always / 2, Always / 2, 1}, 2},
		"an option":                 {Tally{Most: 100, Fills: 10}, []int64{60, 40, 1}, 2},
		"an option above all":       {Tally{Most: math.MaxInt64, Fills: 10}, []int64{1 << 60, 1 << 60}, 2},
		"a sum that overflows":      {Tally{Most: math.MaxInt64, Fills: 10}, []int64{math.MaxInt64, 1}, 1},
		"more than any machine has": {Tally{Fills: Unknown}, []int64{Always, 1 << 60}, 1},
	} {
		for i, n := range c.add {
			if err := c.tally.Add(n); (err == nil) != (i < c.good) || err != nil && !errors.Is(err, ErrLimit) {
				t.Errorf("%s: piece %d: %v", name, i, err)
			}
		}
	}
	mapped := Tally{Fills: 1 << 60}
	if err := errors.Join(mapped.Map(1<<59), mapped.Map(1<<59)); err != nil {
		t.Errorf("what does not go into memory: %v", err)
	}
	if err := mapped.Map(1); !errors.Is(err, ErrLimit) {
		t.Errorf("more than the file has: %v", err)
	}
}
