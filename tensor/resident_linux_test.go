package tensor

import (
	"fmt"
	"os"
	"testing"
)

func residentBytes(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// TestMemoryCache_LevelsOff makes 4 GB of results, of which all, a quarter or none are dropped.
func TestMemoryCache_LevelsOff(t *testing.T) {
	const room = 96 << 20
	for name, every := range map[string]int{"closed": 1 << 30, "dropped": 1, "mixed": 4} {
		t.Run(name, func(t *testing.T) {
			withCache(t, 1<<30)
			x := Ones(Float32, 1<<18)
			lap := func(n int) {
				for i := range n {
					y := Add(x, x)
					if i%every != every-1 {
						y.Close()
					}
				}
			}
			lap(200)
			var grown []int // memory that is not given back grows in each lap
			for range 3 {
				before := residentBytes(t)
				lap(4000)
				if grown = append(grown, residentBytes(t)-before); grown[len(grown)-1] <= room {
					return
				}
			}
			t.Errorf("4000 results of 1 MiB: memory grew by %d bytes", grown)
		})
	}
}
