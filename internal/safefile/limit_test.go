package safefile

import (
	"errors"
	"math"
	"testing"
)

func TestTally(t *testing.T) {
	for name, c := range map[string]struct {
		tally Limit
		add   []int64
		good  int // how many of them
	}{
		"little":                    {Limit{Fills: 10}, []int64{AlwaysAllowed / 2, AlwaysAllowed / 2}, 2},
		"more than the file has":    {Limit{Fills: 10}, []int64{AlwaysAllowed / 2, AlwaysAllowed / 2, 1}, 2},
		"an option":                 {Limit{Most: 100, Fills: 10}, []int64{60, 40, 1}, 2},
		"an option above all":       {Limit{Most: math.MaxInt64, Fills: 10}, []int64{1 << 60, 1 << 60}, 2},
		"a sum that overflows":      {Limit{Most: math.MaxInt64, Fills: 10}, []int64{math.MaxInt64, 1}, 1},
		"more than any machine has": {Limit{Fills: UnknownSize}, []int64{AlwaysAllowed, 1 << 60}, 1},
	} {
		for i, n := range c.add {
			if err := c.tally.Add(n); (err == nil) != (i < c.good) || err != nil && !errors.Is(err, ErrLimit) {
				t.Errorf("%s: piece %d: %v", name, i, err)
			}
		}
	}
	mapped := Limit{Fills: 1 << 60}
	if err := errors.Join(mapped.Map(1<<59), mapped.Map(1<<59)); err != nil {
		t.Errorf("what does not go into memory: %v", err)
	}
	if err := mapped.Map(1); !errors.Is(err, ErrLimit) {
		t.Errorf("more than the file has: %v", err)
	}
}
