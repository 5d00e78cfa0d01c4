package torch

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

// testdata/optimizers.py records these states: an optimizer before its first step, after some
// steps, and after further ones.
type trainedOptimizer struct {
	Kind   string                    `torch:"kind"`
	Begin  any                       `torch:"begin"`
	State  optim.StateDict           `torch:"state"`
	Params map[string]*tensor.Tensor `torch:"params"`
	After  map[string]*tensor.Tensor `torch:"after"`
}

type recordedSchedule struct {
	Kind      string          `torch:"kind"`
	Optimizer optim.StateDict `torch:"optimizer"`
	State     any             `torch:"state"`
	Rates     [][]float64     `torch:"rates"`
}

type recordedOptimizers struct {
	Cases     []trainedOptimizer `torch:"cases"`
	Schedules []recordedSchedule `torch:"schedules"`
	Plateau   struct {
		State    any       `torch:"state"`
		Rates    []float64 `torch:"rates"`
		Measures []float64 `torch:"measures"`
	} `torch:"plateau"`
}

// These are the numbers of the script.
const (
	optimizerSteps, optimizerMore = 3, 2
	scheduleEpochs, scheduleLater = 5, 8
)

// TestRegression_S3_4_OptimizersGoOnFromPyTorchsStateDicts reads the records of two versions of
// PyTorch, and goes on from them.
func TestRegression_S3_4_OptimizersGoOnFromPyTorchsStateDicts(t *testing.T) {
	for _, version := range []string{"1.13", "2.15"} {
		t.Run(version, func(t *testing.T) { goOn(t, filepath.Join("testdata", "optimizers-"+version+".pt")) })
	}
}

// TestRegression_S3_4_StatesCrossToPyTorchAndBack has one process of each PyTorch, which takes
// seconds to begin, for layers and optimizers.
func TestRegression_S3_4_StatesCrossToPyTorchAndBack(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		k := talkTo(t, py, Options{}, "optimizers:run")
		layersCross(t, k)
		optimizersCross(t, k)
		k.bye()
	})
}

// optimizersCross trains with PyTorch and goes on here, and trains here and goes on with PyTorch.
func optimizersCross(t *testing.T, k *talk) {
	dir := t.TempDir()
	recorded, ours, theirs := filepath.Join(dir, "recorded.pt"), filepath.Join(dir, "ours.pt"),
		filepath.Join(dir, "theirs.pt")
	k.ask("record", recorded)
	w := trainHere(t, goOn(t, recorded))
	if err := pt.Save(ours, w.saved); err != nil {
		t.Fatal(err)
	}
	k.ask("resume", ours, theirs)
	w.compare(t, theirs)
}

func goOn(t *testing.T, path string) recordedOptimizers {
	t.Helper()
	r, err := As[recordedOptimizers](pt.Load(path, pt.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cases) < 18 || len(r.Schedules) < 14 {
		t.Fatalf("%d optimizers and %d schedules are recorded", len(r.Cases), len(r.Schedules))
	}
	for i, c := range r.Cases {
		t.Run(fmt.Sprint(c.Kind, i), func(t *testing.T) {
			params := startParams(c.Params)
			o := optimizerOf(c.Kind, params)
			mustLoad(t, o, c.State)
			stepOn(o, params, optimizerSteps, optimizerMore)
			sameParams(t, params, c.After)
		})
	}
	for _, c := range r.Schedules {
		if c.State == nil {
			continue // PyTorch could not save it
		}
		t.Run(c.Kind, func(t *testing.T) {
			at, epoch := loadSchedules(t, c.Kind, c.State)
			sameRates(t, at, epoch, c.Rates)
		})
	}
	var p optim.ReduceLROnPlateau
	if err := p.Load(r.Plateau.State); err != nil {
		t.Fatal(err)
	}
	if got := plateauRates(&p, r.Plateau.Measures[scheduleEpochs:]); !slices.Equal(got, r.Plateau.Rates) {
		t.Errorf("the plateau's rates are %v, not %v", got, r.Plateau.Rates)
	}
	return r
}

// Go's part: the state from which PyTorch goes on, and Go's own result from there.
type work struct {
	saved struct {
		Cases     []map[string]any `torch:"cases"`
		Schedules []map[string]any `torch:"schedules"`
		Plateau   map[string]any   `torch:"plateau"`
		LR        float64          `torch:"lr"`
	}
	after   []map[string]*tensor.Tensor
	at      [][]func(epoch int) float64
	plateau []float64
}

func trainHere(t *testing.T, r recordedOptimizers) (w work) {
	for _, c := range r.Cases {
		params := startParams(nil)
		for _, p := range params {
			p.T = p.T.To(c.Params["0"].DType())
		}
		o := optimizerOf(c.Kind, params)
		mustLoad(t, o, c.Begin)
		stepOn(o, params, 0, optimizerSteps)
		sameParams(t, params, c.Params)
		w.saved.Cases = append(w.saved.Cases,
			map[string]any{"kind": c.Kind, "params": copies(params), "state": cloned(optim.State(o))})
		stepOn(o, params, optimizerSteps, optimizerMore)
		w.after = append(w.after, copies(params))
	}
	for _, c := range r.Schedules {
		s := scheduleOf(c.Kind)
		opt := optimizerOf("SGD", startParams(nil))
		mustLoad(t, opt, c.Optimizer)
		optim.Follow(opt, scheduleEpochs, s...)
		w.saved.Schedules = append(w.saved.Schedules, map[string]any{"kind": c.Kind,
			"state": optim.ScheduleState(scheduleEpochs, s...), "optimizer": optim.State(opt, s...)})
		w.at = append(w.at, ratesAndMomenta(s))
	}
	p := &optim.ReduceLROnPlateau{LR: 0.5, Maximize: true, Factor: new(0.5), Patience: new(1), Threshold: new(0.08),
		Absolute: true, Cooldown: 2, MinLR: 0.01}
	plateauRates(p, r.Plateau.Measures[:scheduleEpochs])
	w.saved.Plateau, w.saved.LR = p.State(), p.LR
	w.plateau = plateauRates(p, r.Plateau.Measures[scheduleEpochs:])
	return w
}

// compare wants PyTorch to have the same result.
func (w work) compare(t *testing.T, path string) {
	t.Helper()
	type result struct {
		After   []map[string]*tensor.Tensor `torch:"after"`
		Rates   [][][]float64               `torch:"rates"`
		Plateau []float64                   `torch:"plateau"`
	}
	got, err := As[result](pt.Load(path, pt.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range w.saved.Cases {
		cell(t, fmt.Sprint("to PyTorch ", c["kind"], i),
			func(t *testing.T) { sameTensors(t, got.After[i], w.after[i]) })
	}
	for i, c := range w.saved.Schedules {
		cell(t, fmt.Sprint("to PyTorch ", c["kind"]),
			func(t *testing.T) { sameRates(t, w.at[i], scheduleEpochs, got.Rates[i]) })
	}
	if !slices.Equal(got.Plateau, w.plateau) {
		t.Errorf("PyTorch's plateau goes on with %v, not %v", got.Plateau, w.plateau)
	}
}

func optimizerOf(kind string, params []*autograd.Param) (groups optim.Groups) {
	for _, part := range [][]*autograd.Param{params[:2], params[2:]} {
		seq := slices.Values(part)
		groups = append(groups, map[string]func() optim.Optimizer{
			"SGD":     func() optim.Optimizer { return optim.NewSGD(seq, optim.SGDOptions{}) },
			"Adam":    func() optim.Optimizer { return optim.NewAdam(seq, optim.AdamOptions{}) },
			"AdamW":   func() optim.Optimizer { return optim.NewAdamW(seq, optim.AdamOptions{}) },
			"RMSprop": func() optim.Optimizer { return optim.NewRMSprop(seq, optim.RMSpropOptions{}) },
			"Adagrad": func() optim.Optimizer { return optim.NewAdagrad(seq, optim.AdagradOptions{}) },
		}[kind]())
	}
	return groups
}

func scheduleOf(kind string) []optim.Schedule {
	pair := func(s func(lr float64) optim.Schedule) []optim.Schedule { return []optim.Schedule{s(0.5), s(0.25)} }
	switch kind {
	case "StepLR":
		return pair(func(lr float64) optim.Schedule { return optim.StepLR{LR: lr, Size: 3, Gamma: 0.1} })
	case "MultiStepLR":
		return pair(func(lr float64) optim.Schedule {
			return optim.MultiStepLR{LR: lr, Milestones: []int{2, 6, 6}, Gamma: 0.3}
		})
	case "ExponentialLR":
		return pair(func(lr float64) optim.Schedule { return optim.ExponentialLR{LR: lr, Gamma: 0.7} })
	case "ConstantLR":
		return pair(func(lr float64) optim.Schedule { return optim.ConstantLR{LR: lr, Factor: 0.25, Epochs: 7} })
	case "LinearLR":
		return pair(func(lr float64) optim.Schedule { return optim.LinearLR{LR: lr, Start: 0.2, End: 0.9, Epochs: 8} })
	case "PolynomialLR":
		return pair(func(lr float64) optim.Schedule { return optim.PolynomialLR{LR: lr, Epochs: 9, Power: 2} })
	case "CosineAnnealing":
		return pair(func(lr float64) optim.Schedule { return optim.CosineAnnealing{LR: lr, Epochs: 12, Min: 0.1} })
	case "CosineAnnealingWarmRestarts":
		return pair(func(lr float64) optim.Schedule {
			return optim.CosineAnnealingWarmRestarts{LR: lr, Epochs: 3, Mult: 2, Min: 0.05}
		})
	case "OneCycleLR":
		return pair(func(lr float64) optim.Schedule { return optim.OneCycleLR{MaxLR: lr, Steps: 20} })
	case "CyclicLR":
		return []optim.Schedule{optim.CyclicLR{LR: 0.1, MaxLR: 0.5, Up: 3, Down: 4},
			optim.CyclicLR{LR: 0.2, MaxLR: 0.6, Up: 3, Down: 4}}
	case "OneCycleLR momentum":
		return pair(func(lr float64) optim.Schedule {
			return optim.OneCycleLR{MaxLR: lr, Steps: 20, CycleMomentum: true}
		})
	case "OneCycleLR momentum in three phases":
		return pair(func(lr float64) optim.Schedule {
			return optim.OneCycleLR{MaxLR: lr, Steps: 20, ThreePhase: true, Linear: true, CycleMomentum: true}
		})
	case "CyclicLR momentum":
		return []optim.Schedule{
			optim.CyclicLR{LR: 0.1, MaxLR: 0.5, Up: 3, Down: 4, CycleMomentum: true, BaseMomentum: new(0.5),
				MaxMomentum: new(0.75)},
			optim.CyclicLR{LR: 0.2, MaxLR: 0.6, Up: 3, Down: 4, CycleMomentum: true, BaseMomentum: new(0.6),
				MaxMomentum: new(0.9)}}
	case "CyclicLR triangular2":
		return pair(func(float64) optim.Schedule { return optim.CyclicLR{LR: 0.1, MaxLR: 0.5, Up: 3, Halve: true} })
	case "CyclicLR exp_range":
		return pair(func(float64) optim.Schedule { return optim.CyclicLR{LR: 0.1, MaxLR: 0.5, Up: 3, Gamma: new(0.9)} })
	case "LambdaLR":
		return pair(func(lr float64) optim.Schedule { return optim.LambdaLR{LR: lr, Factor: reciprocal} })
	case "SequentialLR":
		return pair(func(lr float64) optim.Schedule {
			return optim.SequentialLR{Milestones: []int{4, 7}, Schedules: []optim.Schedule{
				optim.LinearLR{LR: lr, Start: 0.1, End: 1, Epochs: 4},
				optim.ExponentialLR{LR: lr, Gamma: 0.5}, optim.ConstantLR{LR: lr, Factor: 0.25, Epochs: 2}}}
		})
	}
	panic(kind)
}

func reciprocal(epoch int) float64 { return 1 / float64(1+epoch) }

// loadSchedules loads a state into a schedule that has only the class of it.
func loadSchedules(t *testing.T, kind string, state any) (at []func(int) float64, epoch int) {
	t.Helper()
	switch scheduleOf(kind)[0].(type) {
	case optim.StepLR:
		return loaded(t, optim.StepLR{}, state)
	case optim.MultiStepLR:
		return loaded(t, optim.MultiStepLR{}, state)
	case optim.ExponentialLR:
		return loaded(t, optim.ExponentialLR{}, state)
	case optim.ConstantLR:
		return loaded(t, optim.ConstantLR{}, state)
	case optim.LinearLR:
		return loaded(t, optim.LinearLR{}, state)
	case optim.PolynomialLR:
		return loaded(t, optim.PolynomialLR{}, state)
	case optim.CosineAnnealing:
		return loaded(t, optim.CosineAnnealing{}, state)
	case optim.CosineAnnealingWarmRestarts:
		return loaded(t, optim.CosineAnnealingWarmRestarts{}, state)
	case optim.OneCycleLR:
		return loaded(t, optim.OneCycleLR{}, state)
	case optim.CyclicLR:
		return loaded(t, optim.CyclicLR{}, state)
	case optim.LambdaLR:
		return loaded(t, optim.LambdaLR{Factor: reciprocal}, state)
	}
	return loaded(t, optim.SequentialLR{Schedules: []optim.Schedule{optim.LinearLR{}, optim.ExponentialLR{},
		optim.ConstantLR{}}}, state)
}

func loaded[S optim.Schedule](t *testing.T, like S, state any) (at []func(int) float64, epoch int) {
	t.Helper()
	schedules, epoch, err := optim.LoadSchedule(like, state)
	if err != nil {
		t.Fatal(err)
	}
	return ratesAndMomenta(schedules), epoch
}

// ratesAndMomenta are the rates of the groups, and then their momenta.
func ratesAndMomenta[S optim.Schedule](schedules []S) (at []func(epoch int) float64) {
	for _, s := range schedules {
		at = append(at, func(epoch int) float64 { return optim.LR(s, epoch) })
	}
	for _, s := range schedules {
		at = append(at, func(epoch int) float64 {
			sgd := optim.NewSGD(slices.Values(startParams(nil)), optim.SGDOptions{})
			optim.Follow(sgd, epoch, s)
			return sgd.Momentum
		})
	}
	return at
}

func sameRates(t *testing.T, at []func(int) float64, epoch int, rates [][]float64) {
	t.Helper()
	if len(rates) != scheduleLater || epoch != scheduleEpochs {
		t.Fatalf("%d rates from epoch %d on", len(rates), epoch)
	}
	for k, groups := range rates {
		for i, want := range groups {
			if got := at[i](epoch + k); math.Abs(got-want) > 1e-12 {
				t.Errorf("epoch %d, group %d: %v here, and %v in PyTorch", epoch+k, i, got, want)
			}
		}
	}
}

func plateauRates(p *optim.ReduceLROnPlateau, measures []float64) (rates []float64) {
	for _, m := range measures {
		rates = append(rates, p.Step(m))
	}
	return rates
}

// pseudo returns the numbers that values of the script returns.
func pseudo(seed int, shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.Float64, shape...)
	for i, d := 0, tensor.Data[float64](t); i < len(d); i++ {
		d[i] = float64((i*7919+seed*104729)%1009)/504.5 - 1
	}
	return t
}

// startParams are the script's parameters, with values or with their first values.
func startParams(values map[string]*tensor.Tensor) (params []*autograd.Param) {
	for j, shape := range [][]int{{3, 2}, {2}, {4}, {3}} {
		x := pseudo(j, shape...)
		if values != nil {
			x = values[fmt.Sprint(j)].Clone()
		}
		params = append(params, autograd.NewParam(fmt.Sprint(j), x))
	}
	return params
}

func stepOn(o optim.Optimizer, params []*autograd.Param, first, steps int) {
	for k := first; k < first+steps; k++ {
		for j, p := range params {
			if j != 2 {
				p.Grad = pseudo(10*k+j, p.T.Shape()...).To(p.T.DType())
			}
		}
		o.Step()
	}
}

func mustLoad(t *testing.T, o optim.Optimizer, state any) {
	t.Helper()
	if err := optim.Load(o, state); err != nil {
		t.Fatal(err)
	}
}

func copies(params []*autograd.Param) map[string]*tensor.Tensor {
	m := map[string]*tensor.Tensor{}
	for _, p := range params {
		m[p.Name] = p.T.Clone()
	}
	return m
}

// cloned is a copy of a state, which later steps do not change.
func cloned(d optim.StateDict) optim.StateDict {
	for _, s := range d.State {
		for key, v := range s {
			s[key] = v.(*tensor.Tensor).Clone()
		}
	}
	return d
}

func sameParams(t *testing.T, params []*autograd.Param, want map[string]*tensor.Tensor) {
	t.Helper()
	sameTensors(t, copies(params), want)
}

func sameTensors(t *testing.T, got, want map[string]*tensor.Tensor) {
	t.Helper()
	if len(got) != 4 || len(want) != 4 {
		t.Fatalf("%d and %d parameters", len(got), len(want))
	}
	for name, x := range want {
		tolerance := 1e-13
		if x.DType() == tensor.Float32 {
			tolerance = 2e-6
		}
		if d := farthest(got[name], x); !(d <= tolerance) {
			t.Errorf("parameter %s is off by %v", name, d)
		}
	}
}
