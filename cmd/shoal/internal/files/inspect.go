package files

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/cmplx"
	"runtime"
	"slices"
	"sync/atomic"
	"text/tabwriter"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// A Summary says what a tensor is, and what is in it.
type Summary struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	Bytes int    `json:"bytes"`
	// Numbers are of the elements that are numbers, of the magnitudes of complex ones; nil where
	// there are none.
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

// Inspect prints what is in a file, as a table or as one JSON object; on log, where that is a
// terminal, a bar says how far it is. The error wraps ErrFormat, or is what reading says or the
// cause of the context's end, after which the program ends.
func Inspect(ctx context.Context, out, log io.Writer, path string, asJSON bool, o Options) error {
	return untilDone(ctx, func() error { return inspect(out, log, path, asJSON, o) })
}

func inspect(out, log io.Writer, path string, asJSON bool, o Options) error {
	format, err := Of(path)
	if err != nil {
		return err
	}
	c, err := format.load(log, path, o.MaxBytes)
	if err != nil {
		return err
	}
	list, size, err := summaries(log, path, c.Tensors, o.MaxBytes)
	if err != nil {
		return err
	}
	if asJSON {
		o := map[string]any{"file": path, "format": format.Name, "bytes": size, "tensors": list}
		if len(c.Meta) > 0 {
			o["metadata"] = c.Meta
		}
		if len(c.Others) > 0 {
			o["others"] = c.others()
		}
		return json.NewEncoder(out).Encode(o)
	}
	words.Fprintf(out, "%s: %s, %s, %s\n", path, format.Name, words.Count(len(list), "tensor"), words.Bytes(int64(size)))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "name\tdtype\tshape\tsize\tmin\tmax\tmean\tstd\t")
	for _, s := range list {
		words.Fprintf(w, "%s\t%s\t%v\t%s\t", s.Name, s.DType, s.Shape, words.Bytes(int64(s.Bytes)))
		fmt.Fprintln(w, s.statistics())
	}
	for _, key := range slices.Sorted(maps.Keys(c.Meta)) {
		words.Fprintf(w, "metadata %s: %s\n", key, c.Meta[key])
	}
	for _, name := range c.others() {
		words.Fprintf(w, "also %s\n", name)
	}
	return w.Flush()
}

// summaries are those of all tensors, in the order of their names, and their bytes.
func summaries(log io.Writer, path string, tensors Tensors, most int64) (list []Summary, size int, err error) {
	looks := 0
	for name, t := range tensors {
		size = min(size+t.Nbytes(), math.MaxInt/2)
		seen, times := distinct(t)
		looks += seen.Nbytes()
		stored := int64(len(t.Storage().Bytes()))
		if err := safefile.CheckPlausible(int64(seen.Nbytes()), overlap*stored, most, raise); err != nil {
			return nil, 0, fmt.Errorf("inspect %s: tensor %q of %d views of one element: %w", path, name, times, err)
		}
		seen.Close()
	}
	var done atomic.Int64
	defer watch(log, "inspect "+path, looks, done.Load)()
	list = []Summary{}
	err = tensor.Catch(func() {
		for _, name := range slices.Sorted(maps.Keys(tensors)) {
			list = append(list, summarize(name, tensors[name], &done))
		}
	})
	return list, size, err
}

// overlap is how often all elements of a storage are looked at for a tensor that has them several
// times.
const overlap = 64

// distinct returns a view of t without the repetitions of what was expanded, and how often each of
// its elements is in t. The caller closes it.
func distinct(t *tensor.Tensor) (view *tensor.Tensor, times int) {
	shape, times := slices.Clone(t.Shape()), 1
	for i, step := range t.Strides() {
		if step == 0 && shape[i] > 1 {
			times *= shape[i]
			shape[i] = 1
		}
	}
	return t.AsStrided(shape, t.Strides(), t.Offset()), times
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

func summarize(name string, t *tensor.Tensor, done *atomic.Int64) Summary {
	s := Summary{Name: name, DType: t.DType().String(), Shape: append([]int{}, t.Shape()...), Bytes: t.Nbytes()}
	low, high, sum, squares, n := math.Inf(1), math.Inf(-1), 0.0, 0.0, 0
	shift := 0.0 // the first number, about which squares are summed, lest they cancel out
	seen, times := distinct(t)
	defer seen.Close()
	for v := range values(seen, done) {
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
		s.Numbers = &Numbers{finite(low), finite(high), finite(shift + mean),
			finite(math.Sqrt(max(0, squares/float64(n)-mean*mean)))}
	}
	s.NaN, s.Inf = s.NaN*times, s.Inf*times
	return s
}

// piece is how many elements are turned into numbers at once.
const piece = 1 << 16

// values yields the elements in some order, and counts the bytes of those that it has yielded. It
// copies a piece at a time.
func values(t *tensor.Tensor, done *atomic.Int64) func(yield func(float64) bool) {
	return func(yield func(float64) bool) {
		eachPiece(t, func(part *tensor.Tensor) bool {
			part = part.Contiguous()
			defer part.Close()
			for _, v := range numbers(part) {
				if !yield(v) {
					return false
				}
			}
			done.Add(int64(part.Nbytes()))
			return true
		})
	}
}

// eachPiece calls do with parts of t that have no more elements than a piece, until it returns
// false.
func eachPiece(t *tensor.Tensor, do func(part *tensor.Tensor) bool) bool {
	if t.Numel() <= piece {
		return t.Numel() == 0 || do(t)
	}
	longest := 0
	for i, n := range t.Shape() {
		if n > t.Dim(longest) {
			longest = i
		}
	}
	step := max(1, t.Dim(longest)*piece/t.Numel()) // beyond it the part is cut along another dimension
	for from := 0; from < t.Dim(longest); from += step {
		part := t.Narrow(longest, from, min(step, t.Dim(longest)-from))
		more := eachPiece(part, do)
		if part.Close(); !more {
			return false
		}
	}
	return true
}

// numbers are the elements of a tensor, or the magnitudes of complex ones.
func numbers(t *tensor.Tensor) []float64 {
	if dt := t.DType(); dt != tensor.Complex64 && dt != tensor.Complex128 {
		return tensor.Data[float64](t.To(tensor.Float64))
	}
	all := t.To(tensor.Complex128)
	magnitudes := make([]float64, 0, all.Numel())
	for _, z := range tensor.Data[complex128](all) {
		magnitudes = append(magnitudes, cmplx.Abs(z))
	}
	runtime.KeepAlive(all)
	return magnitudes
}
