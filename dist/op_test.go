package dist_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A recording is what testdata/gloo.py wrote.
type recording struct {
	Elements [2][]float64
	Rows     []struct {
		DType, Op, Error string
		Got              json.RawMessage
	}
}

var ops = []dist.Op{dist.Sum, dist.Mean, dist.Max, dist.Min, dist.Prod, dist.BAnd, dist.BOr, dist.BXor}

func TestRegression_S3_3_ReductionsAreThoseOfGloo(t *testing.T) {
	text, err := os.ReadFile("testdata/gloo.json")
	testutil.NoError(t, err)
	var rec recording
	testutil.NoError(t, json.Unmarshal(text, &rec))
	dtypes := map[string]tensor.DType{}
	for _, dt := range append(kinds, tensor.Bool, tensor.Complex64, tensor.Complex128) {
		dtypes[dt.String()] = dt
	}
	opOf := map[string]dist.Op{}
	for _, op := range ops {
		opOf[op.String()] = op
	}
	if len(rec.Rows) != len(dtypes)*len(opOf) {
		t.Fatalf("%d rows of %d dtypes and %d operations", len(rec.Rows), len(dtypes), len(opOf))
	}
	groups, ctx := handles(t, 2), testutil.Context(t)
	for _, row := range rec.Rows {
		dt, op := dtypes[row.DType], opOf[row.Op]
		ts := make([]*tensor.Tensor, 2)
		errs := together(groups, func(g *dist.Group) error {
			e := rec.Elements[g.Rank()]
			ts[g.Rank()] = tensor.FromSlice(e, len(e)).Clone().To(dt)
			return g.AllReduce(ctx, op, ts[g.Rank()])
		})
		if row.Error != "" && (dt != tensor.Int16 || op == dist.Mean) { // gloo has no int16; Shoal does
			if !errors.Is(errs[0], dist.ErrTensor) || !errors.Is(errs[1], dist.ErrTensor) {
				t.Errorf("%s of %s: %v, and gloo says %s", op, dt, errs, row.Error)
			}
			continue
		}
		all(t, errs)
		if dt == tensor.Int16 {
			continue
		}
		want(t, row.Op+" of "+row.DType, ts[0], recorded(t, row.Got, dt))
		want(t, row.Op+" of "+row.DType, ts[1], ts[0])
	}
}

// recorded returns elements, which are pairs if they are complex.
func recorded(t *testing.T, text json.RawMessage, dt tensor.DType) *tensor.Tensor {
	var numbers []float64
	if json.Unmarshal(text, &numbers) == nil {
		return tensor.FromSlice(numbers, len(numbers)).To(dt)
	}
	var pairs [][2]float64
	testutil.NoError(t, json.Unmarshal(text, &pairs))
	var all []complex128
	for _, p := range pairs {
		all = append(all, complex(p[0], p[1]))
	}
	return tensor.FromSlice(all, len(all)).To(dt)
}

func TestRegression_S3_3_BitwiseReductions(t *testing.T) {
	groups, ctx := handles(t, 3), testutil.Context(t)
	const n = 70_001 // several turns
	for _, dt := range []tensor.DType{tensor.Bool, tensor.Uint8, tensor.Int16, tensor.Int64} {
		for _, op := range []dist.Op{dist.BAnd, dist.BOr, dist.BXor} {
			own := make([]*tensor.Tensor, 3)
			for r := range own {
				own[r] = tensor.RandInt(tensor.NewGenerator(uint64(r)), 0, 2, n).To(dt)
			}
			result := own[0].Clone()
			for _, x := range own[1:] { // of 0 and 1: the product, the greatest, and whether they differ
				switch op {
				case dist.BAnd:
					result = tensor.Minimum(result.To(tensor.Int64), x.To(tensor.Int64)).To(dt)
				case dist.BOr:
					result = tensor.Maximum(result.To(tensor.Int64), x.To(tensor.Int64)).To(dt)
				case dist.BXor:
					result = tensor.Ne(result.To(tensor.Int64), x.To(tensor.Int64)).To(dt)
				}
			}
			all(t, together(groups, func(g *dist.Group) error { return g.AllReduce(ctx, op, own[g.Rank()]) }))
			for _, x := range own {
				want(t, op.String()+" of "+dt.String(), x, result)
			}
		}
	}
	z := []*tensor.Tensor{tensor.FromSlice([]complex64{1 + 2i, -1i}, 2),
		tensor.FromSlice([]complex64{3 - 1i, 2}, 2), tensor.FromSlice([]complex64{2 + 2i, 1}, 2)}
	all(t, together(groups, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Mean, z[g.Rank()]) }))
	want(t, "the mean of complex numbers", z[1], tensor.FromSlice([]complex64{2 + 1i, complex(1, float32(-1)/3)}, 2))
}
