package safefile

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		bytes, fills, most int64
		want               string // in the error; none if empty
	}{
		"little":                      {AlwaysAllowed, 0, 0, ""},
		"more than the file has":      {AlwaysAllowed + 1, 1000, 0, "a file of this size can contain at most 1000"},
		"as much as the file has":     {AlwaysAllowed + 1, AlwaysAllowed + 1, 0, ""},
		"more than any machine has":   {1 << 60, 1 << 61, 0, "this process can allocate"},
		"nobody knows what it has":    {1 << 60, UnknownSize, 0, "this process can allocate"},
		"an option":                   {1001, 2000, 1000, "the limit is 1000"},
		"an option above all":         {AlwaysAllowed + 1, 0, math.MaxInt64, ""},
		"as much as the option gives": {1000, 0, 1000, ""},
	} {
		err := CheckSize(c.bytes, c.fills, c.most, "raise MaxBytes")
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "raise MaxBytes")):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestInflated(t *testing.T) {
	for packed, want := range map[int64]int64{
		0: 0, 1: 1040, 1 << 20: 1 << 30, 10 << 20: 1 << 30, 12 << 20: 1200 << 20, 1 << 40: 100 << 40,
		1 << 62: math.MaxInt64,
	} {
		if got := InflatedSize(packed); got != want {
			t.Errorf("%d bytes become %d, want %d", packed, got, want)
		}
	}
}
