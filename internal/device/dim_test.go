package device_test

import (
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/internal/device"
)

func TestMerge_JoinsWhatAllOperandsRunThrough(t *testing.T) {
	type dims = []device.Dim[[2]int]
	steps := func(s *[2]int) []int { return s[:] }
	for name, c := range map[string]struct{ in, want dims }{
		"nothing":         {nil, nil},
		"one":             {dims{{3, [2]int{1, 2}}}, dims{{3, [2]int{1, 2}}}},
		"contiguous":      {dims{{2, [2]int{12, 12}}, {3, [2]int{4, 4}}, {4, [2]int{1, 1}}}, dims{{24, [2]int{1, 1}}}},
		"a number":        {dims{{2, [2]int{3, 0}}, {3, [2]int{1, 0}}}, dims{{6, [2]int{1, 0}}}},
		"a row broadcast": {dims{{2, [2]int{3, 0}}, {3, [2]int{1, 1}}}, dims{{2, [2]int{3, 0}}, {3, [2]int{1, 1}}}},
		"the inner two": {dims{{2, [2]int{50, 6}}, {2, [2]int{3, 3}}, {3, [2]int{1, 1}}},
			dims{{2, [2]int{50, 6}}, {6, [2]int{1, 1}}}},
		"the outer two": {dims{{2, [2]int{6, 6}}, {3, [2]int{2, 2}}, {1, [2]int{9, 9}}},
			dims{{6, [2]int{2, 2}}, {1, [2]int{9, 9}}}},
		"one operand only": {dims{{2, [2]int{3, 4}}, {3, [2]int{1, 1}}}, dims{{2, [2]int{3, 4}}, {3, [2]int{1, 1}}}},
	} {
		if got := device.Merge(c.in, steps); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
