package files

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/shoal-mp/shoal/tensor"
)

// A Summary says what a tensor is, and what is in it.
type Summary struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	Bytes int    `json:"bytes"`
	// Numbers are of the elements that are numbers, nil where there are none and for complex ones.
	Numbers *Numbers `json:"numbers,omitempty"`
	NaN     int      `json:"nan,omitempty"` // elements that are not
	Inf     int      `json:"inf,omitempty"` // elements that are infinite, which are numbers
}

// Numbers are statistics. Std divides by the number of elements. JSON has null for an infinity.
type Numbers struct {
	Min  finite `json:"min"`
	Max  finite `json:"max"`
	Mean finite `json:"mean"`
	Std  finite `json:"std"`
}

// finite is a number that JSON may not have.
type finite float64

// MarshalJSON writes null for what JSON does not have.
func (f finite) MarshalJSON() ([]byte, error) {
	if v := float64(f); !math.IsInf(v, 0) && !math.IsNaN(v) {
		return json.Marshal(v)
	}
	return []byte("null"), nil
}

// Inspect prints what is in a file, as a table or as one JSON object. The error wraps ErrFormat or is what reading says.
func Inspect(out io.Writer, path string, asJSON bool) error {
	format, err := Of(path)
	if err != nil {
		return err
	}
	tensors, err := format.Load(path)
	if err != nil {
		return err
	}
	list, size := []Summary{}, 0
	err = tensor.Guard(func() {
		for _, name := range slices.Sorted(maps.Keys(tensors)) {
			list = append(list, summarize(name, tensors[name]))
			size += tensors[name].Nbytes()
		}
	})
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]any{"file": path, "format": format.Name, "bytes": size, "tensors": list})
	}
	fmt.Fprintf(out, "%s: %s, %d tensors, %s\n", path, format.Name, len(list), bytes(size))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "name\tdtype\tshape\tsize\tmin\tmax\tmean\tstd\t")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%v\t%s\t%s\n", s.Name, s.DType, s.Shape, bytes(s.Bytes), s.statistics())
	}
	return w.Flush()
}

// statistics are the last columns of a row.
func (s Summary) statistics() string {
	if s.Numbers == nil {
		return "\t\t\t\t" + s.odd()
	}
	n := s.Numbers
	return fmt.Sprintf("%.6g\t%.6g\t%.6g\t%.6g\t%s", n.Min, n.Max, n.Mean, n.Std, s.odd())
}

// odd counts what should not be in weights.
func (s Summary) odd() string {
	if s.NaN+s.Inf == 0 {
		return ""
	}
	return fmt.Sprintf("%d NaN, %d infinite", s.NaN, s.Inf)
}

func summarize(name string, t *tensor.Tensor) Summary {
	s := Summary{Name: name, DType: t.DType().String(), Shape: append([]int{}, t.Shape()...), Bytes: t.Nbytes()}
	if t.DType() == tensor.Complex64 || t.DType() == tensor.Complex128 {
		return s
	}
	low, high, sum, squares, n := math.Inf(1), math.Inf(-1), 0.0, 0.0, 0
	shift := 0.0 // the first number, about which squares are summed, lest they cancel out
	for v := range values(t) {
		switch {
		case math.IsNaN(v):
			s.NaN++
			continue
		case math.IsInf(v, 0):
			s.Inf++
		case n == s.Inf:
			shift = v
		}
		n++
		low, high = min(low, v), max(high, v)
		sum += v - shift
		squares += (v - shift) * (v - shift)
	}
	if n > 0 {
		mean := sum / float64(n)
		s.Numbers = &Numbers{finite(low), finite(high), finite(shift + mean), finite(math.Sqrt(max(0, squares/float64(n)-mean*mean)))}
	}
	return s
}

// piece is how many elements are turned into numbers at once.
const piece = 1 << 16

// values yields the elements.
func values(t *tensor.Tensor) func(yield func(float64) bool) {
	return func(yield func(float64) bool) {
		whole := t.Contiguous()
		defer whole.Close()
		flat := whole.View(whole.Numel())
		defer flat.Close()
		for from := 0; from < flat.Numel(); from += piece {
			part := flat.Narrow(0, from, min(piece, flat.Numel()-from))
			numbers := part.To(tensor.Float64)
			for _, v := range tensor.Data[float64](numbers) {
				if !yield(v) {
					return
				}
			}
			runtime.KeepAlive(numbers)
			part.Close()
		}
	}
}
