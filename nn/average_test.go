package nn_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestAverage_IsTheMeanOfStates(t *testing.T) {
	layer := func(v float64, batches int64) *nn.BatchNorm2d {
		m := nn.NewBatchNorm2d(2)
		m.Weight.T.Fill(v)
		tensor.SetAt(nn.State(m)["num_batches_tracked"], batches)
		return m
	}
	m, a, b := layer(1, 7), layer(2, 8), layer(6, 12)
	testutil.NoError(t, nn.Average(m, nn.State(m), nn.State(a), nn.State(b))) // m's own among them
	if w, n := tensor.At[float32](m.Weight.T, 1),
		tensor.At[int64](nn.State(m)["num_batches_tracked"]); w != 3 || n != 9 {
		t.Errorf("weight %v after %d batches", w, n)
	}
	if w := tensor.At[float32](a.Weight.T, 0); w != 2 {
		t.Errorf("a state was changed: %v", w)
	}
	wrong := nn.State(b)
	wrong["weight"], wrong["more"] = tensor.New(tensor.Float32, 3), tensor.New(tensor.Float32)
	err := nn.Average(m, nn.State(a), wrong)
	if !errors.Is(err, nn.ErrShape) || !errors.Is(err, nn.ErrUnexpected) || tensor.At[float32](m.Weight.T, 0) != 3 {
		t.Errorf("%v, weight %v", err, m.Weight.T)
	}
}
