package tensor

import (
	"math"
	"strconv"
	"strings"
)

// printDigits is the number of digits after the decimal point.
const printDigits = 4

// A format is the common format of a tensor's elements.
type format struct {
	width      int
	whole      bool // all elements are integers: "3."
	scientific bool
}

// floatFormat returns the format for values, by PyTorch's rules.
func floatFormat(values []float64) format {
	f := format{width: 1, whole: true}
	least, greatest := math.Inf(1), 0.0
	var normal []float64
	for _, v := range values {
		if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		normal = append(normal, v)
		f.whole = f.whole && v == math.Ceil(v)
		least, greatest = min(least, math.Abs(v)), max(greatest, math.Abs(v))
	}
	if len(normal) == 0 {
		return f
	}
	f.scientific = greatest/least > 1000 || greatest > 1e8 || !f.whole && least < 1e-4
	for _, v := range normal {
		f.width = max(f.width, len(f.formatUnpadded(v)))
	}
	return f
}

func (f format) formatNumber(v float64) string { return f.pad(f.formatUnpadded(v)) }

func (f format) pad(s string) string { return strings.Repeat(" ", max(0, f.width-len(s))) + s }

func (f format) formatUnpadded(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return map[bool]string{true: "inf", false: "-inf"}[v > 0]
	case f.scientific:
		return strconv.FormatFloat(v, 'e', printDigits, 64)
	case f.whole:
		return strconv.FormatFloat(v, 'f', 0, 64) + "."
	}
	return strconv.FormatFloat(v, 'f', printDigits, 64)
}
