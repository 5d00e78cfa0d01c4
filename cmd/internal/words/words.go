package words

import "fmt"

// Bytes formats a size with a binary unit up to TiB.
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

// Count formats a number with a noun: "1 tensor", "2 tensors".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
