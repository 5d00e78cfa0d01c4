package autograd_test

import (
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
)

// backward returns a value computed from inputs, and their gradients of its sum with weights. The
// inputs are where put puts them.
func backward(t *testing.T, put func(t *tensor.Tensor) *tensor.Tensor, c gradient, s *autograd.Scope) []*tensor.Tensor {
	var params []*autograd.Param
	var in vars
	for _, x := range c.inputs {
		p := autograd.NewParam("input", put(x))
		params, in = append(params, p), append(in, p.Var())
	}
	y := c.f(in)
	autograd.Sum(autograd.Mul(y, s.Const(put(values(77, 1, y.Shape()...))))).Backward()
	got := []*tensor.Tensor{y.T()}
	for _, p := range params {
		got = append(got, p.Grad)
	}
	return got
}

func TestBackward_IsTheSameOnADevice(t *testing.T) {
	dev := devicetest.New("test:0")
	there := func(x *tensor.Tensor) *tensor.Tensor { return devicetest.On(t, dev, x) }
	near, far := gradients(here), gradients(there)
	for name := range near {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "Dropout") {
				t.Skip("a device's random numbers are others")
			}
			want := backward(t, here, near[name], nil)
			for _, s := range []*autograd.Scope{nil, autograd.NewScope()} {
				for i, got := range backward(t, there, far[name], s) {
					if got.Device() != dev {
						t.Errorf("output or gradient %d is on %v", i, got.Device())
					}
					devicetest.Same(t, got, want[i], 1e-12)
				}
			}
		})
	}
}

// Results and gradients of values whose dimensions are in another order in memory have that order
// too, and loops over rows must not take one for row-major.
func TestBackward_IsTheSameInAnyOrderOfMemory(t *testing.T) {
	turned := func(x *tensor.Tensor) *tensor.Tensor {
		back := make([]int, x.Dims())
		for d := range back {
			back[d] = x.Dims() - 1 - d
		}
		return x.Permute(back...).Clone().Permute(back...)
	}
	plain, others := gradients(here), gradients(turned)
	for name := range plain {
		t.Run(name, func(t *testing.T) {
			want := backward(t, here, plain[name], nil)
			for _, s := range []*autograd.Scope{nil, autograd.NewScope()} {
				for i, got := range backward(t, turned, others[name], s) {
					devicetest.Same(t, got, want[i], 1e-12)
				}
			}
		})
	}
}

// The gradient of the first factor is made by an operation that begins with the second one.
func TestBackward_TakesAGradientInAnotherOrder(t *testing.T) {
	p := autograd.NewParam("p", positive(1, 3, 4))
	of := func(exponents *tensor.Tensor) *tensor.Tensor {
		autograd.Sum(autograd.Power(autograd.ReLU(p.Var()), autograd.Const(exponents))).Backward()
		g := p.Grad.Clone()
		p.ZeroGrad()
		return g
	}
	b := positive(2, 4, 3)
	devicetest.Same(t, of(b.T()), of(b.T().Contiguous()), 1e-12)
}

// Images are unfolded a few at a time, and what comes out is the same.
func TestConv2d_OnADeviceTakesNoMoreThanItMay(t *testing.T) {
	const n = 40
	const columns = 2 * 3 * 3 * 7 * 7 * 8 // bytes of one image
	conv := func(in vars) *autograd.Var { return autograd.Conv2d(in[0], in[1], in[2], autograd.Window{}) }
	inputs := []*tensor.Tensor{values(1, 1, n, 2, 9, 9), values(2, 1, 3, 2, 3, 3), values(3, 1, 3)}
	var want []*tensor.Tensor
	most := map[int]int64{}
	for _, limit := range []int{columns * n, columns * 3, columns * 7, 1} {
		before := autograd.SetWorkspace(limit)
		dev := devicetest.New("test:0")
		there := func(x *tensor.Tensor) *tensor.Tensor { return devicetest.On(t, dev, x) }
		got := backward(t, there, gradient{conv, inputs}, nil)
		dev = devicetest.New("test:1")
		var in vars
		for _, x := range inputs {
			in = append(in, autograd.Const(there(x)))
		}
		conv(in)
		most[limit] = dev.Most()
		autograd.SetWorkspace(before)
		if want == nil {
			want = got
		}
		for i := range got {
			devicetest.Same(t, got[i], onHost(t, want[i]), 1e-12)
		}
	}
	if most[1] > most[columns*n]-columns*n/2 { // images and results are 100,000 bytes, and all columns 280,000
		t.Errorf("%d bytes at once, and %d if all images are unfolded, of %d bytes each", most[1],
			most[columns*n], columns)
	}
}

// Each of these is one kernel, and so is its gradient. Another one looks at classes.
func TestBackward_NeedsFewKernelsOfADevice(t *testing.T) {
	dev := devicetest.New("test:0")
	x := autograd.NewParam("x", devicetest.On(t, dev, values(1, 1, 4, 5)))
	classes := devicetest.On(t, dev, tensor.FromSlice([]int64{0, 4, 2, 2}, 4))
	for name, f := range map[string]func(x *autograd.Var) *autograd.Var{
		"LogSoftmax": func(x *autograd.Var) *autograd.Var { return autograd.LogSoftmax(x, -1) },
		"Softmax":    func(x *autograd.Var) *autograd.Var { return autograd.Softmax(x, -1) },
		"GELU":       autograd.GELU,
		"GELUTanh":   autograd.GELUTanh,
		"SiLU":       autograd.SiLU,
		"ReLU":       autograd.ReLU,
		"LayerNorm":  func(x *autograd.Var) *autograd.Var { return autograd.LayerNorm(x, []int{5}, nil, nil, 1e-5) },
		"Dropout":    func(x *autograd.Var) *autograd.Var { return autograd.Dropout(x, 0.5, nil, true) },
		"NLLLoss": func(x *autograd.Var) *autograd.Var {
			return autograd.NLLLoss(x, classes, autograd.Classification{})
		},
	} {
		x.Grad = nil
		before := dev.Calls()
		y := f(x.Var())
		if n := dev.Calls() - before; n != 1 && (n != 2 || name != "NLLLoss") {
			t.Errorf("%s takes %d kernels", name, n)
		}
		autograd.Sum(y).Backward()
		if x.Grad == nil || x.Grad.Device() != dev {
			t.Errorf("%s has no gradient there", name)
		}
	}
}

func TestDropout_OnADevice(t *testing.T) {
	dev := devicetest.New("test:0")
	ones, err := tensor.On(dev).Ones(tensor.Float64, 100, 10, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		f   func(x *autograd.Var, p float64, g *tensor.Generator, train bool) *autograd.Var
		run int
	}{"Dropout": {autograd.Dropout, 1}, "Dropout2d": {autograd.Dropout2d, 6}} {
		p := autograd.NewParam("x", ones.Clone())
		y := c.f(p.Var(), 0.25, tensor.NewGenerator(1), true)
		autograd.Sum(y).Backward()
		devicetest.Same(t, p.Grad, onHost(t, y.T()), 0) // of ones, what is kept is what it is multiplied by
		runs := tensor.Data[float64](onHost(t, y.T()))
		kept := 0
		for i := range runs {
			if first := runs[i-i%c.run]; runs[i] != first || first != 0 && first != 1/0.75 {
				t.Fatalf("%s: element %d is %v, the first of its run %v", name, i, runs[i], first)
			}
			if runs[i] != 0 {
				kept++
			}
		}
		// three standard deviations of 1000 are 0.04
		if share := float64(kept) / float64(len(runs)); share < 0.7 || share > 0.8 {
			t.Errorf("%s kept %v of its elements, want 0.75", name, share)
		}
	}
}

func onHost(t *testing.T, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	h, err := x.CPU()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestBackward_OfSeveralDevicesIsRefused(t *testing.T) {
	here, there := devicetest.New("test:0"), devicetest.New("test:1")
	x, w := autograd.Const(devicetest.On(t, here, values(1, 1, 2, 3))),
		autograd.NewParam("w", devicetest.On(t, there, values(2, 1, 4, 3)))
	for name, f := range map[string]func(){
		"two devices":         func() { autograd.Linear(x, w.Var(), nil) },
		"host and device":     func() { autograd.Linear(autograd.Const(values(1, 1, 2, 3)), w.Var(), nil) },
		"device and host":     func() { autograd.Linear(w.Var(), autograd.Const(values(1, 1, 2, 3)), nil) },
		"targets on the host": func() { autograd.NLLLoss(x, tensor.New(tensor.Int64, 2), autograd.Classification{}) },
		"logits on the host": func() {
			autograd.NLLLoss(autograd.Const(values(1, 1, 2, 3)),
				devicetest.On(t, here, tensor.New(tensor.Int64, 2)), autograd.Classification{})
		},
	} {
		refuses(t, name, f)
	}
}

// refuses fails unless f panics with tensor.ErrDevices.
func refuses(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		if err, ok := recover().(error); !ok ||
			!strings.Contains(err.Error(),
				"expected all tensors to be on the same device, but found at least two devices, ") {
			t.Errorf("%s: %v", name, err)
		}
	}()
	f()
}
