package torch

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// describePython formats a batch with the types of its parts.
func describePython(v any) string {
	switch v := v.(type) {
	case *python.Dict:
		var parts []string
		for k, item := range v.All() {
			parts = append(parts, fmt.Sprintf("%v: %s", k, describePython(item)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		return "[" + describeItems(v) + "]"
	case python.Tuple:
		return "(" + describeItems(v) + ")"
	case *tensor.Tensor:
		return fmt.Sprintf("%v%v%x", v.DType(), v.Shape(), elementBytes(v.Clone()))
	}
	return fmt.Sprintf("%T %v", v, v)
}

func describeItems(items []any) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = describePython(item)
	}
	return strings.Join(parts, ", ")
}

// randomMaker returns a function that makes values with one random structure.
func randomMaker(r *rand.Rand, depth int) func() any {
	switch k := r.IntN(9); {
	case k == 0:
		return func() any { return r.Int64() }
	case k == 1:
		return func() any { return r.Float64() }
	case k == 2:
		return func() any { return r.IntN(2) == 0 }
	case k == 3:
		return func() any { return strings.Repeat("é", r.IntN(4)) }
	case k == 4 || depth > 3:
		dts, n := []tensor.DType{tensor.Float32, tensor.Int64, tensor.Uint8, tensor.Bool}, r.IntN(4)
		dt, sliced := dts[r.IntN(len(dts))], r.IntN(3) == 0
		return func() any {
			if sliced { // a part of a larger storage
				return tensor.Rand(tensor.Float32, nil, 3, n, 2).To(dt).Select(0, 1)
			}
			return tensor.Rand(tensor.Float32, nil, n, 2).To(dt)
		}
	case k == 5:
		return func() any { return nil }
	case k < 8:
		names, makers := []string{"b", "a", "c"}[:1+r.IntN(3)], map[string]func() any{}
		for _, name := range names {
			makers[name] = randomMaker(r, depth+1)
		}
		return func() any {
			d := map[string]any{}
			for name, maker := range makers {
				d[name] = maker()
			}
			return d
		}
	}
	var makers []func() any
	for range r.IntN(3) {
		makers = append(makers, randomMaker(r, depth+1))
	}
	return func() any {
		list := make([]any, len(makers))
		for i, maker := range makers {
			list[i] = maker()
		}
		return list
	}
}

// TestColumns_CollateAsPackageTree compares batches of random values, some of which differ in a
// sample, with those of package tree.
func TestColumns_CollateAsPackageTree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	w := &loaderWorker{collate: true}
	direct := 0
	for range 2000 {
		maker, samples := randomMaker(r, 0), make([]any, 1+r.IntN(5))
		for i := range samples {
			samples[i] = maker()
		}
		if r.IntN(4) == 0 {
			samples[r.IntN(len(samples))] = randomMaker(r, 0)()
		}
		got, ok, err := w.collateColumns(samples)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			continue
		}
		direct++
		flat := make([]tree.Value, len(samples))
		for i, s := range samples {
			if flat[i], err = tree.Flatten(s, tree.Rules{}); err != nil {
				t.Fatalf("%v: got %s, want the error %v", samples, describePython(got), err)
			}
		}
		batch, err := tree.Collate(flat, tree.Rules{}, w.batchMemory)
		if err != nil {
			t.Fatalf("%v: got %s, want the error %v", samples, describePython(got), err)
		}
		want, err := toPython(batch, false)
		if err != nil || describePython(got) != describePython(want) {
			t.Fatalf("%v: got %s, want %s, %v", samples, describePython(got), describePython(want), err)
		}
		CloseAll(got)
		CloseAll(want)
	}
	if direct < 500 {
		t.Errorf("got %d direct batches, want more", direct)
	}
}

// TestColumns_GiveUpOnWhatIsWrong checks that package tree decides about unusual samples.
func TestColumns_GiveUpOnWhatIsWrong(t *testing.T) {
	closed := tensor.New(tensor.Float32, 2)
	closed.Close()
	w := &loaderWorker{collate: true}
	for _, samples := range [][]any{
		{nil}, {int64(1), 2.0}, {"a", []byte("b")}, {closed},
		{map[string]any{"a": int64(1)}, map[string]any{"b": int64(1)}},
		{map[string]any{"a": int64(1)}, map[string]any{}}, {map[string]any{}}, {[]any{}}, {[]any{int64(1)}, []any{}},
		{tensor.New(tensor.Float32, 2), tensor.New(tensor.Float32, 3)},
		{tensor.New(tensor.Float32, 2), tensor.New(tensor.Float64, 2)}, {tensor.New(tensor.Float32, 2), nil},
		{tensor.New(tensor.Float32, 2, 3).Transpose(0, 1)}, {int32(1)}, {[2]any{int64(1), int64(2)}},
	} {
		if got, ok, err := w.collateColumns(samples); ok || err != nil {
			t.Errorf("%v: got %s, %v", samples, describePython(got), err)
		}
	}
}

// TestLabels_AreIntsInSingleSamples checks the samples of data sets with labels, alone and beside
// others.
func TestLabels_AreIntsInSingleSamples(t *testing.T) {
	sample := func() any {
		return data.Sample{tensor.New(tensor.Float32, 1, 2), tensor.FromSlice([]int64{7}),
			tensor.FromSlice([]float64{1})}
	}
	for _, c := range []struct {
		labeled []bool
		want    bool
	}{{nil, false}, {[]bool{true}, true}, {[]bool{true, true}, true}, {[]bool{true, false}, false},
		{[]bool{false}, false}} {
		w := new(loaderWorker)
		for _, labeled := range c.labeled {
			w.countSource(labeled)
		}
		got := w.withLabels([]any{sample(), "x"})
		if got[1] != "x" {
			t.Errorf("%v: got %v, want the other value as it is", c.labeled, got[1])
		}
		v := reflect.ValueOf(got[0])
		if n, isInt := v.Index(1).Interface().(int64); isInt != c.want || isInt && n != 7 {
			t.Errorf("%v: got %v", c.labeled, got[0])
		}
		if _, isTensor := v.Index(2).Interface().(*tensor.Tensor); !isTensor {
			t.Errorf("%v: got %v, want a tensor of float64", c.labeled, v.Index(2))
		}
	}
}
