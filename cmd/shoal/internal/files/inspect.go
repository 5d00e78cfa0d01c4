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

// A Summary describes a tensor and its values.
type Summary struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	Bytes int    `json:"bytes"`
	// Numbers are statistics of the elements that are numbers; complex elements count by magnitude.
	// It is nil if there are none.
	Numbers *Numbers `json:"numbers,omitempty"`
	NaN     int      `json:"nan,omitempty"` // NaN elements
	Inf     int      `json:"inf,omitempty"` // infinite elements, which are also in Numbers
}

// Numbers are statistics. Std is the population standard deviation. Infinities are encoded as null
// in JSON.
type Numbers struct {
	Min  finite `json:"min"`
	Max  finite `json:"max"`
	Mean finite `json:"mean"`
	Std  finite `json:"std"`
}

// finite is a float64 that is encoded as null in JSON if it is not finite.
type finite float64

// MarshalJSON encodes infinities and NaN as null.
func (f finite) MarshalJSON() ([]byte, error) {
	if v := float64(f); !math.IsInf(v, 0) && !math.IsNaN(v) {
		return json.Marshal(v)
	}
	return []byte("null"), nil
}

// Inspect prints the contents of a file as a table or as one JSON object. If log is a terminal, a
// progress bar is drawn on it. The error wraps [ErrFormat] or is an error of reading. If ctx is
// done, Inspect returns its cause, and the caller should exit.
func Inspect(ctx context.Context, out, log io.Writer, path string, asJSON bool, o Options) error {
	return runUntilDone(ctx, func() error { return inspect(out, log, path, asJSON, o) })
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
	list, size, err := summarizeAll(log, path, c.Tensors, o.MaxBytes)
	if err != nil {
		return err
	}
	if asJSON {
		o := map[string]any{"file": path, "format": format.Name, "bytes": size, "tensors": list}
		if len(c.Meta) > 0 {
			o["metadata"] = c.Meta
		}
		if len(c.Others) > 0 {
			o["others"] = c.otherNames()
		}
		return json.NewEncoder(out).Encode(o)
	}
	words.Fprintf(out, "%s: %s, %s, %s\n", path, format.Name, words.Count(len(list), "tensor"),
		words.Bytes(int64(size)))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "name\tdtype\tshape\tsize\tmin\tmax\tmean\tstd\t")
	for _, s := range list {
		words.Fprintf(w, "%s\t%s\t%v\t%s\t", s.Name, s.DType, s.Shape, words.Bytes(int64(s.Bytes)))
		fmt.Fprintln(w, s.statisticsText())
	}
	for _, key := range slices.Sorted(maps.Keys(c.Meta)) {
		words.Fprintf(w, "metadata %s: %s\n", key, c.Meta[key])
	}
	for _, name := range c.otherNames() {
		words.Fprintf(w, "also %s\n", name)
	}
	return w.Flush()
}

// summarizeAll returns the summaries of all tensors in the order of their names, and their total
// size in bytes. It returns an error for a tensor that overlaps itself so much that reading it
// would exceed the limit most; see [overlap]. path is used in messages.
func summarizeAll(log io.Writer, path string, tensors Tensors, most int64) (list []Summary, size int, err error) {
	looks := 0
	for name, t := range tensors {
		size = min(size+t.Nbytes(), math.MaxInt/2)
		seen, times := withoutRepeats(t)
		looks += seen.Nbytes()
		stored := int64(len(t.Storage().Bytes()))
		if err := safefile.CheckPlausible(int64(seen.Nbytes()), overlap*stored, most, raise); err != nil {
			return nil, 0, fmt.Errorf("inspect %s: tensor %q views each element %d times: %w", path, name, times, err)
		}
		seen.Close()
	}
	var done atomic.Int64
	defer startProgress(log, "inspect "+path, looks, done.Load)()
	list = []Summary{}
	err = tensor.Catch(func() {
		for _, name := range slices.Sorted(maps.Keys(tensors)) {
			list = append(list, summarize(name, tensors[name], &done))
		}
	})
	return list, size, err
}

// overlap limits how many times the elements of a storage are read for a tensor that overlaps
// itself.
const overlap = 64

// withoutRepeats returns a view of t without repetitions, that is, with size 1 in expanded
// dimensions, and the number of times that each of its elements occurs in t. The caller must close
// the view.
func withoutRepeats(t *tensor.Tensor) (view *tensor.Tensor, times int) {
	shape, times := slices.Clone(t.Shape()), 1
	for i, step := range t.Strides() {
		if step == 0 && shape[i] > 1 {
			times *= shape[i]
			shape[i] = 1
		}
	}
	return t.AsStrided(shape, t.Strides(), t.Offset()), times
}

// statisticsText formats the last columns of a row.
func (s Summary) statisticsText() string {
	if s.Numbers == nil {
		return "\t\t\t\t" + s.anomalyText()
	}
	n := s.Numbers
	return fmt.Sprintf("%.6g\t%.6g\t%.6g\t%.6g\t%s", n.Min, n.Max, n.Mean, n.Std, s.anomalyText())
}

// anomalyText returns the numbers of NaN and infinite elements, which weights should not contain,
// or "" if there are none.
func (s Summary) anomalyText() string {
	if s.NaN+s.Inf == 0 {
		return ""
	}
	return fmt.Sprintf("%d NaN, %d infinite", s.NaN, s.Inf)
}

func summarize(name string, t *tensor.Tensor, done *atomic.Int64) Summary {
	s := Summary{Name: name, DType: t.DType().String(), Shape: append([]int{}, t.Shape()...), Bytes: t.Nbytes()}
	low, high, sum, squares, n := math.Inf(1), math.Inf(-1), 0.0, 0.0, 0
	shift := 0.0 // first number; shifting by it avoids cancellation in the sum of squares
	seen, times := withoutRepeats(t)
	defer seen.Close()
	for v := range eachValue(seen, done) {
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

// piece is the number of elements that are converted at a time.
const piece = 1 << 16

// eachValue yields the elements of t in an unspecified order and adds the number of bytes read to
// done. It copies one piece at a time.
func eachValue(t *tensor.Tensor, done *atomic.Int64) func(yield func(float64) bool) {
	return func(yield func(float64) bool) {
		eachPiece(t, func(part *tensor.Tensor) bool {
			part = part.Contiguous()
			defer part.Close()
			for _, v := range toFloat64(part) {
				if !yield(v) {
					return false
				}
			}
			done.Add(int64(part.Nbytes()))
			return true
		})
	}
}

// eachPiece calls do for parts of t with at most [piece] elements until do returns false, and
// reports whether do always returned true. do must not keep a part, which may be closed when do
// returns.
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
	step := max(1, t.Dim(longest)*piece/t.Numel()) // recursion splits others
	for from := 0; from < t.Dim(longest); from += step {
		part := t.Narrow(longest, from, min(step, t.Dim(longest)-from))
		more := eachPiece(part, do)
		if part.Close(); !more {
			return false
		}
	}
	return true
}

// toFloat64 returns the elements of t as float64. Complex elements are replaced by their
// magnitudes. t must be contiguous, and must stay open while the result is used, which may be
// its memory.
func toFloat64(t *tensor.Tensor) []float64 {
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
