package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

var steps = Suite{
	Name:   "steps",
	Doc:    "operations of 2^20 elements and training steps of six networks, with 1, 2 and 4 threads",
	peer:   "torch_steps.py",
	groups: []func(context.Context, *environment) (group, error){threadedOperationRows, threadedStepRows},
	sum:    medianStepRow,
}

// threadCounts are the numbers of threads of the rows of a work.
var threadCounts = []int{1, 2, 4}

// longStep is the duration of a step with one thread for which the second thread must be efficient.
const longStep = 5 * time.Millisecond

func threadedOperationRows(_ context.Context, h *environment) (group, error) {
	g := group{rounds: 7}
	for _, o := range threadedOperations() {
		g.cases = append(g.cases, h.threadedCases("op_"+o.name, func() {
			if result := o.do(); result != nil {
				result.Close()
			}
		})...)
	}
	return g, nil
}

// threadedOperations are operations of 2^20 elements. Names and shapes must match the peer's
// script.
func threadedOperations() []operation {
	g := tensor.NewGenerator(1)
	x, y := tensor.RandN(tensor.Float32, g, 1024, 1024), tensor.RandN(tensor.Float32, g, 1024, 1024)
	row, w := tensor.RandN(tensor.Float32, g, 1024), x.Clone()
	p := autograd.NewParam("p", x.Clone())
	p.Grad = y.Clone()
	one := func(yield func(*autograd.Param) bool) { yield(p) }
	sgd := optim.NewSGD(one, optim.SGDOptions{LR: 1e-9, Momentum: 0.9})
	adam := optim.NewAdam(one, optim.AdamOptions{LR: 1e-9})
	step := func(o optim.Optimizer) func() *tensor.Tensor {
		return func() *tensor.Tensor { o.Step(); return nil }
	}
	softmax := func() *tensor.Tensor { nn.Softmax.Forward(autograd.NoGrad(x)); return nil }
	return []operation{
		{"add", binaryCall(tensor.Add, x, y)},
		{"mul_row", binaryCall(tensor.Mul, x, row)},
		{"gt", binaryCall(tensor.Gt, x, y)},
		{"exp", unaryCall(tensor.Exp, x)},
		{"tanh", unaryCall(tensor.Tanh, x)},
		{"sum", reduceCall(tensor.Sum, x)},
		{"sum_0", reduceCall(tensor.Sum, x, 0)},
		{"amax_1", reduceCall(tensor.Amax, x, 1)},
		{"softmax", softmax},
		{"to_float16", castCall(x, tensor.Float16)},
		{"transpose", func() *tensor.Tensor { return x.Transpose(0, 1).Contiguous() }},
		{"uniform", func() *tensor.Tensor { w.FillUniform(g, -1, 1); return nil }},
		{"normal", func() *tensor.Tensor { w.FillNormal(g, 0, 1); return nil }},
		{"sgd", step(sgd)},
		{"adam", step(adam)},
		{"mm", binaryCall(tensor.MatMul, x, y)},
	}
}

func threadedStepRows(_ context.Context, h *environment) (group, error) {
	g := group{rounds: 7}
	for _, n := range stepNetworks() {
		g.cases = append(g.cases, h.threadedCases("step_"+n.name, n.newStep())...)
	}
	return g, nil
}

// threadedCases returns a row for each number of threads, named after name, which is also the
// operation of the peer's script. It calls do twice to choose the number of calls in a sample.
// The row for two threads must not be slower than the peer, and for long steps the second thread
// must save 80 % of the ideal time.
func (h *environment) threadedCases(name string, do func()) (cases []Case) {
	rounds := 1
	if !h.quick {
		do()
		begin := time.Now()
		do()
		rounds = int(min(max(50*time.Millisecond/max(time.Since(begin), 1), 3), 1000))
	}
	for _, threads := range threadCounts {
		c := Case{
			Name: fmt.Sprintf("%s_%d", name, threads), Unit: Nanoseconds,
			Ours: measureThreads(threads, rounds, do),
			Peer: &peerWork{op: name, Rounds: rounds, Args: []int{threads}},
		}
		if threads == 2 && runtime.NumCPU() >= threads {
			c.Target = bothTargets(timesPeer(1), efficientSecond(name+"_1"))
		}
		cases = append(cases, c)
	}
	return cases
}

// measureThreads returns a probe of the median time of a call in ns with a number of threads,
// over rounds calls after an equal number of calls that are not counted.
func measureThreads(threads, rounds int, do func()) *Probe {
	return &Probe{Measure: func(context.Context) (float64, error) {
		defer kernel.SetThreads(kernel.Threads())
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
		kernel.SetThreads(threads)
		for range rounds {
			do()
		}
		calls := make([]float64, rounds)
		for i := range calls {
			begin := time.Now()
			do()
			calls[i] = float64(time.Since(begin))
		}
		return median(calls), nil
	}}
}

// efficientSecond requires that the second thread saves at least 80 % of the ideal time of a
// long step. one is the row with one thread. If its value is not above longStep, the target is
// met and has no text.
func efficientSecond(one string) Target {
	return func(r Result, before []Result) (text string, met bool) {
		for _, b := range before {
			if b.Suite == r.Suite && b.Name == one && b.Value > float64(longStep) {
				return "efficiency ≥ 0.8", b.Value >= 2*0.8*r.Value
			}
		}
		return "", true
	}
}

// medianStepRow returns a row with the median ratio of our time to the peer's for steps with two
// threads, or the zero Result if none has a peer.
func medianStepRow(rows []Result) Result {
	var two []Result
	for _, r := range rows {
		if len(r.Name) > 5 && r.Name[:5] == "step_" && r.Name[len(r.Name)-2:] == "_2" {
			two = append(two, r)
		}
	}
	m := medianRow(two)
	if m.Name != "" {
		m.Name, m.Target, m.Met = "step_median_2", "≤ 0.75 × peer's time", m.Value <= 0.75
	}
	return m
}

// A stepNetwork is a network with the shape of its input. The last dimension of its output is the
// class. It must match the peer's script.
type stepNetwork struct {
	name  string
	net   nn.Layer
	shape []int
	adam  bool // the optimizer: Adam, or SGD with momentum
}

const stepClasses = 10

// newStep returns a function that performs a training step with the cross-entropy loss.
func (n *stepNetwork) newStep() func() {
	g, scope := tensor.NewGenerator(2), autograd.NewScope()
	x := tensor.RandN(tensor.Float32, g, n.shape...)
	rows := n.net.Forward(autograd.NoGrad(x)).T().Numel() / stepClasses
	labels := tensor.RandInt(g, 0, stepClasses, rows)
	var o optim.Optimizer = optim.NewSGD(nn.Params(n.net), optim.SGDOptions{LR: 1e-3, Momentum: 0.9})
	if n.adam {
		o = optim.NewAdam(nn.Params(n.net), optim.AdamOptions{LR: 1e-4})
	}
	return func() {
		o.ZeroGrad()
		y := autograd.Reshape(n.net.Forward(scope.Const(x)), rows, stepClasses)
		nn.CrossEntropyLoss{}.Of(y, labels).Backward()
		o.Step()
		scope.Reset()
	}
}

// stepNetworks returns the networks of the training steps.
func stepNetworks() []stepNetwork {
	g := tensor.NewGenerator(1)
	conv := func(in, out int) *nn.Conv2d {
		c := nn.NewConv2d(in, out, 3, g)
		c.Padding = [2]int{1, 1}
		return c
	}
	mlp := nn.NewSequential(nn.Flatten, nn.NewLinear(28*28, 512, g), nn.ReLU, nn.NewLinear(512, 512, g), nn.ReLU,
		nn.NewLinear(512, stepClasses, g))
	cnn := nn.NewSequential(conv(3, 32), nn.ReLU, conv(32, 32), nn.ReLU, nn.NewMaxPool2d(2), conv(32, 64), nn.ReLU,
		nn.NewMaxPool2d(2), nn.Flatten, nn.NewLinear(64*8*8, 128, g), nn.ReLU, nn.NewLinear(128, stepClasses, g))
	transformer := nn.NewSequential(nn.NewTransformerEncoderLayer(256, 4, 1024, 0, g),
		nn.NewTransformerEncoderLayer(256, 4, 1024, 0, g), nn.NewLinear(256, stepClasses, g))
	lstm := nn.NewSequential(nn.NewLSTM(256, 256, g, nn.RecurrentOptions{}), nn.NewLinear(256, stepClasses, g))
	var thin []nn.Layer
	for range 200 {
		thin = append(thin, nn.NewLinear(32, 32, g), nn.ReLU)
	}
	return []stepNetwork{
		{"mlp", mlp, []int{64, 1, 28, 28}, false},
		{"cnn", newDigitNet(), []int{64, 1, 28, 28}, false},
		{"cnn32", cnn, []int{32, 3, 32, 32}, false},
		{"transformer", transformer, []int{64, 8, 256}, true},
		{"lstm", lstm, []int{64, 32, 256}, true},
		{"thin", nn.NewSequential(append(thin, nn.NewLinear(32, stepClasses, g))...), []int{64, 32}, false},
	}
}
