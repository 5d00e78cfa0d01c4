package words

import "fmt"

// Bytes writes a size with the unit that suits it, up to TiB.
func Bytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/(1<<10), []string{"KiB", "MiB", "GiB", "TiB"}
	for len(units) > 1 && v >= 1<<10 {
		v, units = v/(1<<10), units[1:]
	}
	return fmt.Sprintf("%.1f %s", v, units[0])
}

// Count writes how many things of one kind there are: "1 tensor", "2 tensors".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
