package nn_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// Whatever shapes, indices and options come from a request, tensor.Catch returns their mistakes.
func TestCatch_ReturnsMistakesInLayers(t *testing.T) {
	x := func(shape ...int) *autograd.Var { return autograd.Const(tensor.Ones(tensor.Float32, shape...)) }
	ints := func(v ...int64) *tensor.Tensor { return tensor.FromSlice(v, len(v)) }
	for name, c := range map[string]struct {
		want error
		f    func()
	}{
		"Linear":        {tensor.ErrShape, func() { nn.NewLinear(4, 2, nil).Forward(x(3, 5)) }},
		"Linear, sizes": {tensor.ErrArgument, func() { nn.NewLinear(0, 2, nil) }},
		"Conv2d, channels": {tensor.ErrShape,
			func() { autograd.Conv2d(x(1, 3, 8, 8), x(4, 2, 3, 3), nil, autograd.Window{}) }},
		"Conv2d, too small": {tensor.ErrShape,
			func() { autograd.Conv2d(x(1, 3, 2, 2), x(4, 3, 3, 3), nil, autograd.Window{}) }},
		"Conv2d, dims": {tensor.ErrShape,
			func() { autograd.Conv2d(x(3, 2, 2), x(4, 3, 3, 3), nil, autograd.Window{}) }},
		"Conv2d, stride": {tensor.ErrMisuse, func() {
			autograd.Conv2d(x(1, 3, 8, 8), x(4, 3, 3, 3), nil, autograd.Window{Stride: [2]int{-1, 1}})
		}},
		"Conv2d, padding": {tensor.ErrMisuse, func() {
			autograd.Conv2d(x(1, 3, 8, 8), x(4, 3, 3, 3), nil, autograd.Window{Padding: [2]int{-1, 0}})
		}},
		"Conv2d, dilation": {tensor.ErrMisuse, func() {
			autograd.Conv2d(x(1, 3, 8, 8), x(4, 3, 3, 3), nil, autograd.Window{Dilation: [2]int{-1, 1}})
		}},
		"Conv2d, groups": {tensor.ErrMisuse, func() {
			autograd.Conv2d(x(1, 3, 8, 8), x(4, 3, 3, 3), nil, autograd.Window{Groups: -2})
		}},
		"MaxPool2d, dims": {tensor.ErrMisuse,
			func() { autograd.MaxPool2d(x(8), autograd.Window{Size: [2]int{2, 2}}) }},
		"MaxPool2d, window": {tensor.ErrMisuse,
			func() { autograd.MaxPool2d(x(1, 1, 8, 8), autograd.Window{Size: [2]int{-2, 2}}) }},
		"MaxPool2d, no size": {tensor.ErrMisuse, func() { autograd.MaxPool2d(x(1, 1, 8, 8), autograd.Window{}) }},
		"AvgPool2d, stride": {tensor.ErrMisuse, func() {
			autograd.AvgPool2d(x(1, 1, 8, 8), autograd.Window{Size: [2]int{2, 2}, Stride: [2]int{-1, 1}})
		}},
		"AvgPool2d, padding": {tensor.ErrMisuse, func() {
			autograd.AvgPool2d(x(1, 1, 8, 8), autograd.Window{Size: [2]int{2, 2}, Padding: [2]int{-1, 0}})
		}},
		"Embedding": {tensor.ErrIndex,
			func() { nn.NewEmbedding(4, 2, nil).Forward(autograd.Const(ints(4))) }},
		"Embedding, -1": {tensor.ErrIndex,
			func() { nn.NewEmbedding(4, 2, nil).Forward(autograd.Const(ints(-1))) }},
		"CrossEntropy, class": {tensor.ErrIndex,
			func() { autograd.CrossEntropy(x(1, 3), ints(3), autograd.Classification{}) }},
		"CrossEntropy, rows": {tensor.ErrShape,
			func() { autograd.CrossEntropy(x(1, 3), ints(0, 1), autograd.Classification{}) }},
		"Dropout":              {tensor.ErrArgument, func() { autograd.Dropout(x(3), 1.5, nil, true) }},
		"LayerNorm":            {tensor.ErrShape, func() { autograd.LayerNorm(x(2, 3), []int{4}, nil, nil, 1e-5) }},
		"Softmax":              {tensor.ErrIndex, func() { autograd.Softmax(x(2, 3), 2) }},
		"MSELoss":              {tensor.ErrShape, func() { autograd.MSELoss(x(2), x(3), autograd.ByMean) }},
		"a dimension":          {tensor.ErrIndex, func() { autograd.Sum(x(2), 1) }},
		"a dimension, twice":   {tensor.ErrIndex, func() { autograd.Sum(x(2), 0, -1) }},
		"shapes":               {tensor.ErrShape, func() { autograd.Add(x(2), x(3)) }},
		"Reshape":              {tensor.ErrShape, func() { autograd.Reshape(x(2), 3) }},
		"Backward of a vector": {tensor.ErrShape, func() { autograd.Leaf(tensor.Ones(tensor.Float32, 2)).Backward() }},
	} {
		if err := func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%s: panic %v, which Catch does not return", name, p)
					err = c.want
				}
			}()
			return tensor.Catch(c.f)
		}(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want one that wraps %v", name, err, c.want)
		}
	}
}
