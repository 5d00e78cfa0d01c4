package nn_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// mustPanic fails unless f panics with a sentence that has want in it.
func mustPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		err, _ := recover().(error)
		if !errors.Is(err, tensor.ErrMisuse) || !strings.Contains(err.Error(), want) {
			t.Errorf("panic %v, want an error of a mistake with %q", err, want)
		}
	}()
	f()
}

// odd has every way in which a field can lead to a parameter.
type odd struct {
	nn.Linear                // embedded: no name of its own
	HiddenOut *nn.Linear     // several words
	FCLast    nn.Linear      // a struct, after an abbreviation
	Blocks    []*nn.Linear   // a list
	Old       *nn.Linear     `nn:"legacy"`
	None      *nn.Linear     // nil
	Home      *nn.Linear     `wire:"-"`
	Any       nn.Layer       // an interface
	Two       [2]*nn.Dropout // without parameters
}

func newOdd() *odd {
	l := func() *nn.Linear { return nn.NewLinear(1, 1, nil) }
	return &odd{Linear: *l(), HiddenOut: l(), FCLast: *l(), Blocks: []*nn.Linear{l(), l()}, Old: l(), Home: l(),
		Any: nn.NewSequential(nn.ReLU, l()), Two: [2]*nn.Dropout{&nn.Dropout{P: 0.1}}}
}

func TestNamed_GivesThePathsOfFields(t *testing.T) {
	got := slices.Sorted(maps.Keys(nn.State(newOdd())))
	var want []string
	for _, layer := range []string{"", "any.1.", "blocks.0.", "blocks.1.", "fc_last.", "hidden_out.", "legacy."} {
		want = append(want, layer+"weight", layer+"bias")
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

func TestParams_ComeOnce(t *testing.T) {
	l := nn.NewLinear(2, 2, nil)
	tied := &Net{l, l}
	if n := len(slices.Collect(nn.Params(tied))); n != 2 {
		t.Errorf("%d parameters, want 2", n)
	}
	if n := len(slices.Collect(nn.Params(tied))); n != 2 {
		t.Errorf("%d parameters, want 2", n)
	}
	if n := len(nn.State(tied)); n != 4 {
		t.Errorf("%d names, want 4", n)
	}
	for range nn.Params(tied) {
		break // leaves nothing running
	}
}

type secretive struct {
	A    *nn.Linear
	b    *nn.Linear
	list []nn.Layer
	home *nn.Linear `wire:"-"` // no part of the module
}

func TestModule_PanicsWhereOnlyAnUnexportedFieldLeadsToAParameter(t *testing.T) {
	l, other := nn.NewLinear(1, 1, nil), nn.NewLinear(1, 1, nil)
	mustPanic(t, "unexported field b.Weight: export", func() { nn.State(&secretive{A: l, b: other}) })
	mustPanic(t, "unexported field list.Weight: export",
		func() { nn.Params(&secretive{A: l, list: []nn.Layer{nn.ReLU, other}})(nil) })
	mustPanic(t, "got <nil>, want a module", func() { nn.State(nil) })
	mustPanic(t, "got int, want a module", func() { nn.State(3) })
	if n := len(nn.State(&secretive{A: l, b: l, home: other})); n != 2 {
		t.Errorf("%d names, want 2", n)
	}
}

func TestLoad_CopiesIntoTheSameTensors(t *testing.T) {
	a, b := NewMNISTNet(tensor.NewGenerator(1)), NewMNISTNet(tensor.NewGenerator(2))
	before := a.FC1.Weight.T
	if err := nn.Load(a, nn.State(b)); err != nil {
		t.Fatal(err)
	}
	if a.FC1.Weight.T != before || !tensor.Equal(before, b.FC1.Weight.T) || before.SameStorage(b.FC1.Weight.T) {
		t.Error("Load did not copy the elements in place")
	}
}

func TestLoad_NamesEveryProblemAndChangesNothing(t *testing.T) {
	net := NewMNISTNet(tensor.NewGenerator(1))
	state := nn.State(NewMNISTNet(tensor.NewGenerator(2)))
	delete(state, "fc1.bias")
	state["fc2.bias"] = tensor.New(tensor.Float32, 11)
	state["conv1.bias"] = tensor.New(tensor.Float64, 10)
	state["fc3.bias"] = tensor.New(tensor.Float32, 1)
	was := net.Conv2.Weight.T.Clone()
	err := nn.Load(net, state)
	for _, want := range []error{nn.ErrMissing, nn.ErrShape, nn.ErrDType, nn.ErrUnexpected} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not in the error", want)
		}
	}
	for _, name := range []string{"fc1.bias", "fc2.bias", "conv1.bias", "fc3.bias"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in the error: %v", name, err)
		}
	}
	if !tensor.Equal(net.Conv2.Weight.T, was) {
		t.Error("a parameter was changed")
	}
}

func TestClone_IsEqualAndApart(t *testing.T) {
	inDomain(t)
	m := newOdd()
	m.Old = m.HiddenOut // tied
	m.HiddenOut.Bias.Frozen = true
	if err := nn.Share(m); err != nil {
		t.Fatal(err)
	}
	c := nn.Clone(m)
	if c.Old != m.Old && c.Old.Weight != c.HiddenOut.Weight {
		t.Error("tied parameters came apart")
	}
	if c.Two[0] == m.Two[0] || c.Two[0].P != 0.1 || !c.HiddenOut.Bias.Frozen {
		t.Error("fields were shared or lost")
	}
	theirs := nn.State(m)
	for name, own := range nn.State(c) {
		if own.IsShared() || own.SameStorage(theirs[name]) || !tensor.Equal(own, theirs[name]) {
			t.Errorf("%s is no copy", name)
		}
	}
	if err := nn.Close(m); err != nil {
		t.Fatal(err)
	}
}

func TestTrain_ReachesEveryDropout(t *testing.T) {
	d := &nn.Dropout{P: 1}
	m := nn.NewSequential(&nn.Dropout2d{P: 1}, nn.NewSequential(d))
	x := autograd.Const(tensor.Ones(tensor.Float32, 1, 2, 2, 2))
	sum := func() float64 { return m.Forward(x).T().Sum() }
	if sum() != 0 {
		t.Error("a new layer does not drop")
	}
	nn.Eval(m)
	if sum() != 8 || !d.Off {
		t.Error("Eval did not reach every layer")
	}
	nn.Train(m)
	if sum() != 0 || d.Off {
		t.Error("Train did not reach every layer")
	}
}

func TestDropout_DrawsFromItsOwnGenerator(t *testing.T) {
	draw := func() *tensor.Tensor {
		d := &nn.Dropout{P: 0.5}
		d.Generator = tensor.NewGenerator(9)
		return d.Forward(autograd.Const(tensor.Ones(tensor.Float32, 100))).T()
	}
	if a, b := draw(), draw(); !tensor.Equal(a, b) {
		t.Error("one seed, two masks")
	}
}

func TestLayer_IsInitialisedAsInPyTorch(t *testing.T) {
	g := tensor.NewGenerator(4)
	l, c := nn.NewLinear(400, 300, g), nn.NewConv2d(10, 20, 5, g)
	for name, p := range map[string]struct {
		t     *tensor.Tensor
		fanIn float64
	}{"linear weight": {l.Weight.T, 400}, "linear bias": {l.Bias.T, 400}, "conv weight": {c.Weight.T, 250},
		"conv bias": {c.Bias.T, 250}} {
		bound := 1 / math.Sqrt(p.fanIn)
		var largest, sum, squares float64
		for _, v := range tensor.Data[float32](p.t) {
			largest, sum, squares = max(largest, math.Abs(float64(v))), sum+float64(v), squares+float64(v)*float64(v)
		}
		n := float64(p.t.Numel())
		deviation := bound / math.Sqrt(3)
		if largest > bound || math.Abs(sum/n) > 5*deviation/math.Sqrt(n) ||
			n > 1000 && (largest < 0.99*bound || math.Abs(math.Sqrt(squares/n)/deviation-1) > 0.05) {
			t.Errorf("%s: largest %v, mean %v, deviation %v; want uniform in ±%v", name, largest, sum/n,
				math.Sqrt(squares/n), bound)
		}
	}
	again := nn.NewLinear(400, 300, tensor.NewGenerator(4))
	if !tensor.Equal(again.Weight.T, l.Weight.T) {
		t.Error("one seed, two layers")
	}
}

func TestLayer_IsItsOperation(t *testing.T) {
	g := tensor.NewGenerator(1)
	c := nn.NewConv2d(2, 3, 3, g)
	c.Stride, c.Padding, c.Bias = [2]int{2, 2}, [2]int{1, 1}, nil
	x := autograd.NoGrad(tensor.RandN(tensor.Float32, g, 2, 2, 7, 5))
	y := c.Forward(x)
	if !slices.Equal(y.Shape(), []int{2, 3, 4, 3}) || len(nn.State(c)) != 1 {
		t.Errorf("shape %v, state %v", y.Shape(), nn.State(c))
	}
	p := nn.MaxPool2d{Size: [2]int{3, 3}, Stride: [2]int{1, 1}, Padding: [2]int{1, 1}}
	if got := p.Forward(y).Shape(); !slices.Equal(got, []int{2, 3, 4, 3}) {
		t.Errorf("shape %v", got)
	}
	mustPanic(t, "different numbers of channels",
		func() { c.Forward(autograd.NoGrad(tensor.New(tensor.Float32, 1, 1, 7, 5))) })
	mustPanic(t, "at least 1", func() { nn.NewLinear(0, 1, nil) })
}

func TestLoss_IsAMean(t *testing.T) {
	x := tensor.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	target := tensor.FromSlice([]int64{1, 0}, 2)
	for name, c := range map[string]struct{ got, want float64 }{
		"NLLLoss": {nn.NLLLoss{}.Of(autograd.Const(x), target).Item(), -(2. + 3) / 2},
		"CrossEntropyLoss": {nn.CrossEntropyLoss{}.Of(autograd.Const(x), target).Item(),
			(math.Log1p(math.Exp(-1)) + math.Log1p(math.Exp(1))) / 2},
		"MSELoss": {nn.MSELoss{}.Of(autograd.Const(x), tensor.New(tensor.Float32, 2, 2)).Item(), 30. / 4},
		"L1Loss":  {nn.L1Loss{}.Of(autograd.Const(x), tensor.New(tensor.Float32, 2, 2)).Item(), 10. / 4},
		"SmoothL1Loss": {nn.SmoothL1Loss{}.Of(autograd.Const(x), tensor.New(tensor.Float32, 2, 2)).Item(),
			(.5 + 1.5 + 2.5 + 3.5) / 4},
		"BCEWithLogitsLoss": {nn.BCEWithLogitsLoss{}.Of(autograd.Const(tensor.New(tensor.Float32, 2, 2)),
			tensor.New(tensor.Float32, 2, 2)).Item(), math.Ln2},
	} {
		if math.Abs(c.got-c.want) > 1e-6 {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

func TestShare_SaysWhenThereIsNoRoom(t *testing.T) {
	inDomain(t)
	m := nn.NewSequential(nn.NewLinear(1500, 1000, nil), nn.NewLinear(1500, 1000, nil)) // 6 MB each in 8 MB
	defer nn.Close(m)
	err := nn.Share(m)
	if !errors.Is(err, arena.ErrNoSpace) || !strings.Contains(err.Error(), "1.weight") {
		t.Errorf("%v, want ErrNoSpace and the parameter", err)
	}
}
