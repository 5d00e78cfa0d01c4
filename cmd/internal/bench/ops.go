package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

var operations = Suite{
	Name: "ops",
	Doc:  "operations of tensors of 2^18 elements, layers and training steps, in one thread",
	peer: "torch_ops.py",
	groups: []func(context.Context, *environment) (group, error){
		resultRows, operationRows(arithmeticOperations), operationRows(functionOperations),
		operationRows(reductionOperations), operationRows(copyOperations), operationRows(indexOperations),
		operationRows(sweepOperations),
		fusedRows, trainingStepRows,
	},
	sum: medianRow,
}

// An operation is measured against the operation of the same name in the peer's script. A result
// that is not nil is closed, as PyTorch frees an unreferenced result.
type operation struct {
	name string
	do   func() *tensor.Tensor
}

// slower is the accepted ratio to the peer's time.
const slower = 1.2

// sampleTime is the approximate duration of one sample.
const sampleTime = 10 * time.Millisecond

func operationRows(operations func(*operands) []operation) func(context.Context, *environment) (group, error) {
	return func(_ context.Context, h *environment) (group, error) {
		g := group{rounds: 9}
		for _, o := range operations(newOperands()) {
			do := func() {
				if result := o.do(); result != nil {
					result.Close()
				}
			}
			rounds := h.callsPerSample(do)
			g.cases = append(g.cases, Case{
				Name: "op_" + o.name, Unit: Nanoseconds, Target: timesPeer(1 / slower),
				Ours: measureMedian(rounds, do),
				Peer: &peerWork{op: o.name, Rounds: rounds},
			})
		}
		return g, nil
	}
}

// callsPerSample calls do a few times and returns how many calls fill a sample of sampleTime: at
// least 1 and at most 2000. In a quick run it returns 1 without a call.
func (h *environment) callsPerSample(do func()) int {
	if h.quick {
		return 1
	}
	cpuTime(3, do) // warm up the memory
	once := cpuTime(3, do) / 3
	return int(min(max(sampleTime/max(once, 1), 1), 2000))
}

// measureMedian returns a probe of the median processor time of a call in ns, over rounds calls.
// The median excludes calls with cold caches after a preemption. An equal number of calls before
// it is not counted, here and in the peer: after a pause, Go's monitor thread wakes every 20 µs
// for some milliseconds, and that is charged to this process, up to a fifth of its time.
func measureMedian(rounds int, do func()) *Probe {
	return &Probe{Measure: func(context.Context) (float64, error) {
		cpuTime(rounds, do)
		calls := make([]float64, rounds)
		for i := range calls {
			calls[i] = float64(cpuTime(1, do))
		}
		return median(calls), nil
	}}
}

// processorTime returns a probe of the mean processor time of a call in ns, garbage collection
// included, over rounds calls after an equal number of calls that are not counted.
func processorTime(rounds int, do func()) *Probe {
	return &Probe{Measure: func(context.Context) (float64, error) {
		cpuTime(rounds, do)
		return float64(cpuTime(rounds, do)) / float64(rounds), nil
	}}
}

// mean requests the mean of the peer's calls, for rows with a mean on our side.
const mean = 1

// resultRows returns rows of add with a result that is closed, so that its memory is reused, and
// with one that is left to the garbage collector. The floor is the same addition in place.
func resultRows(_ context.Context, h *environment) (group, error) {
	o := newOperands()
	closed := func() { tensor.Add(o.x, o.y).Close() }
	rounds := h.callsPerSample(closed)
	sum := o.x.Clone()
	floor := processorTime(rounds, func() { sum.AddInPlace(o.y) })
	row := func(name string, do func()) Case {
		return Case{
			Name: name, Unit: Nanoseconds, Target: timesPeer(1 / slower),
			Ours: processorTime(rounds, do), Floor: floor,
			Peer: &peerWork{op: "add", Rounds: rounds, Args: []int{mean}},
		}
	}
	return group{rounds: 9, cases: []Case{
		row("op_new_result", closed),
		row(droppedRow, func() { tensor.Add(o.x, o.y) }),
	}}, nil
}

// fusedRows returns rows of operations that PyTorch implements as one kernel, and of a
// transformer block, forward and with gradients.
func fusedRows(_ context.Context, h *environment) (group, error) {
	g := tensor.NewGenerator(1)
	l := passList{g: g}
	l.add("softmax", 50, nil, nn.Softmax.Forward, 512, 512)
	l.add("log_softmax", 50, nil, nn.LogSoftmax.Forward, 512, 512)
	norm := nn.NewLayerNorm(512)
	l.add("layer_norm", 50, norm, norm.Forward, 512, 512)
	classes := tensor.RandInt(g, 0, 512, 512)
	l.add("cross_entropy", 50, nil,
		func(x *autograd.Var) *autograd.Var { return nn.CrossEntropyLoss{}.Of(x, classes) }, 512, 512)
	l.add("attention", 5, nil, func(x *autograd.Var) *autograd.Var {
		return autograd.ScaledDotProductAttention(x, x, x, autograd.Attention{})
	}, 8, 4, 128, 64)
	block := nn.NewTransformerEncoderLayer(256, 4, 1024, 0, g)
	l.add("transformer_block", 1, block, block.Forward, 128, 8, 256)
	return group{rounds: 9, cases: passCases(h, "op_", l.all, measureMedian, timesPeer(1/slower))}, nil
}

// trainingStepRows returns rows of training steps of whole networks, optimizer included.
func trainingStepRows(_ context.Context, h *environment) (group, error) {
	g := group{rounds: 9}
	add := func(name string, net nn.Layer) {
		t := newTrainer(net)
		do := func() { t.runSteps(1) }
		rounds := h.callsPerSample(do)
		g.cases = append(g.cases, Case{
			Name: "op_" + name, Unit: Nanoseconds, Target: timesPeer(1 / slower),
			Ours: measureMedian(rounds, do), Peer: &peerWork{op: name, Rounds: rounds},
		})
	}
	add("mlp_step", newPerceptron())
	add("cnn_step", newDigitNet())
	return g, nil
}

// medianRow returns a row with the median ratio of our time to the peer's, over the rows that
// have a peer. It returns the zero Result if none has.
func medianRow(rows []Result) Result {
	var ratios []float64
	dropped := ""
	for _, r := range rows {
		if r.RatioToPeer > 0 {
			ratios = append(ratios, 1/r.RatioToPeer)
			if r.Name == droppedRow {
				dropped = fmt.Sprintf("; with a dropped result %.2f", 1/r.RatioToPeer)
			}
		}
	}
	if len(ratios) == 0 {
		return Result{}
	}
	m := median(ratios)
	return Result{Name: "op_median", Unit: Ratio, Value: m, Target: "≤ 1 × peer's time" + dropped, Met: m <= 1}
}

// droppedRow is the row of an operation with a result that is left to the garbage collector, unlike
// the results of the other rows.
const droppedRow = "op_dropped_result"

// operands holds the operands of the operations. Names and shapes must match the peer's script.
type operands struct {
	x, y, row, col            *tensor.Tensor
	short, shortRow, shortCol *tensor.Tensor
	images, channels          *tensor.Tensor
	positive, mask, byte      *tensor.Tensor
	whole, half               *tensor.Tensor
	picks, places             *tensor.Tensor
}

func newOperands() *operands {
	g := tensor.NewGenerator(1)
	random := func(shape ...int) *tensor.Tensor { return tensor.RandN(tensor.Float32, g, shape...) }
	o := &operands{
		x: random(512, 512), y: random(512, 512), row: random(512), col: random(512, 1),
		short: random(32768, 8), shortRow: random(8), shortCol: random(32768, 1),
		images: random(16, 16, 32, 32), channels: random(16, 1, 1),
		picks: tensor.RandInt(g, 0, 512, 512), places: tensor.RandInt(g, 0, 512, 512, 512),
		byte: tensor.RandInt(g, 0, 256, 512, 512).To(tensor.Uint8),
	}
	o.positive, o.mask = tensor.Abs(o.x), tensor.Gt(o.x, o.y)
	o.whole, o.half = o.x.To(tensor.Int64), o.x.To(tensor.Float16)
	return o
}

func unaryCall(f func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor) func() *tensor.Tensor {
	return func() *tensor.Tensor { return f(x) }
}

func binaryCall(f func(a, b *tensor.Tensor) *tensor.Tensor, a, b *tensor.Tensor) func() *tensor.Tensor {
	return func() *tensor.Tensor { return f(a, b) }
}

func reduceCall(f func(*tensor.Tensor, ...int) *tensor.Tensor, x *tensor.Tensor, dims ...int) func() *tensor.Tensor {
	return func() *tensor.Tensor { return f(x, dims...) }
}

func castCall(x *tensor.Tensor, dt tensor.DType) func() *tensor.Tensor {
	return func() *tensor.Tensor { return x.To(dt) }
}

func arithmeticOperations(o *operands) []operation {
	return []operation{
		{"add", binaryCall(tensor.Add, o.x, o.y)},
		{"add_number", func() *tensor.Tensor { return tensor.Add(o.x, o.x.Number(0)) }},
		{"mul_row", binaryCall(tensor.Mul, o.x, o.row)},
		{"mul_col", binaryCall(tensor.Mul, o.x, o.col)},
		{"add_short_row", binaryCall(tensor.Add, o.short, o.shortRow)},
		{"add_short_col", binaryCall(tensor.Add, o.short, o.shortCol)},
		{"add_channels", binaryCall(tensor.Add, o.images, o.channels)},
		{"add_transposed", binaryCall(tensor.Add, o.x, o.y.Transpose(0, 1))},
		{"div", binaryCall(tensor.Div, o.x, o.y)},
		{"maximum", binaryCall(tensor.Maximum, o.x, o.y)},
		{"gt", binaryCall(tensor.Gt, o.x, o.y)},
		{"gt_number", func() *tensor.Tensor { return tensor.Gt(o.x, o.x.Number(0)) }},
		{"eq_int64", binaryCall(tensor.Eq, o.whole, o.whole)},
		{"add_int64", binaryCall(tensor.Add, o.whole, o.whole)},
		{"where", func() *tensor.Tensor { return tensor.Where(o.mask, o.x, o.y) }},
		{"masked_fill", func() *tensor.Tensor { return o.x.Clone().MaskedFillInPlace(o.mask, 0) }},
		{"clamp", func() *tensor.Tensor { return tensor.Clamp(o.x, -1, 1) }},
	}
}

func functionOperations(o *operands) []operation {
	return []operation{
		{"neg", unaryCall(tensor.Neg, o.x)},
		{"abs", unaryCall(tensor.Abs, o.x)},
		{"relu", unaryCall(tensor.ReLU, o.x)},
		{"sqrt", unaryCall(tensor.Sqrt, o.positive)},
		{"rsqrt", unaryCall(tensor.Rsqrt, o.positive)},
		{"reciprocal", unaryCall(tensor.Reciprocal, o.x)},
		{"floor", unaryCall(tensor.Floor, o.x)},
		{"round", unaryCall(tensor.Round, o.x)},
		{"exp", unaryCall(tensor.Exp, o.x)},
		{"log", unaryCall(tensor.Log, o.positive)},
		{"tanh", unaryCall(tensor.Tanh, o.x)},
		{"sigmoid", unaryCall(tensor.Sigmoid, o.x)},
		{"square", func() *tensor.Tensor { return tensor.Pow(o.x, 2) }},
	}
}

func reductionOperations(o *operands) []operation {
	return []operation{
		{"sum", reduceCall(tensor.Sum, o.x)},
		{"sum_0", reduceCall(tensor.Sum, o.x, 0)},
		{"sum_1", reduceCall(tensor.Sum, o.x, 1)},
		{"sum_short", reduceCall(tensor.Sum, o.short, 1)},
		{"mean_channels", reduceCall(tensor.Mean, o.images, 0, 2, 3)},
		{"var_0", reduceCall(tensor.Var, o.x, 0)},
		{"var_1", reduceCall(tensor.Var, o.x, 1)},
		{"amax", reduceCall(tensor.Amax, o.x)},
		{"amax_0", reduceCall(tensor.Amax, o.x, 0)},
		{"amax_1", reduceCall(tensor.Amax, o.x, 1)},
		{"argmax_0", func() *tensor.Tensor { return tensor.Argmax(o.x, 0) }},
		{"argmax_1", func() *tensor.Tensor { return tensor.Argmax(o.x, 1) }},
		{"argmax_short", func() *tensor.Tensor { return tensor.Argmax(o.short, 1) }},
		{"any_1", reduceCall(tensor.Any, o.mask, 1)},
		{"cumsum", func() *tensor.Tensor { return tensor.CumSum(o.x, 1) }},
	}
}

func copyOperations(o *operands) []operation {
	return []operation{
		{"cat_0", func() *tensor.Tensor { return tensor.Cat(0, o.x, o.y) }},
		{"cat_1", func() *tensor.Tensor { return tensor.Cat(1, o.x, o.y) }},
		{"transpose", func() *tensor.Tensor { return o.x.Transpose(0, 1).Contiguous() }},
		{"channels_last", func() *tensor.Tensor { return o.images.Permute(0, 2, 3, 1).Contiguous() }},
		{"to_float64", castCall(o.x, tensor.Float64)},
		{"to_int64", castCall(o.x, tensor.Int64)},
		{"to_float16", castCall(o.x, tensor.Float16)},
		{"to_bfloat16", castCall(o.x, tensor.BFloat16)},
		{"byte_to_float32", castCall(o.byte, tensor.Float32)},
		{"int64_to_float32", castCall(o.whole, tensor.Float32)},
		{"float16_to_float32", castCall(o.half, tensor.Float32)},
		{"bool_to_float32", castCall(o.mask, tensor.Float32)},
	}
}

func indexOperations(o *operands) []operation {
	return []operation{
		{"index_select_0", func() *tensor.Tensor { return tensor.IndexSelect(o.x, 0, o.picks) }},
		{"index_select_1", func() *tensor.Tensor { return tensor.IndexSelect(o.x, 1, o.picks) }},
		{"gather_0", func() *tensor.Tensor { return tensor.Gather(o.x, 0, o.places) }},
		{"gather_1", func() *tensor.Tensor { return tensor.Gather(o.x, 1, o.places) }},
		{"masked_select", binaryCall(tensor.MaskedSelect, o.x, o.mask)},
		{"nonzero", unaryCall(tensor.Nonzero, o.mask)},
		{"sort", func() *tensor.Tensor {
			values, indices := tensor.Sort(o.x, 1, false)
			indices.Close()
			return values
		}},
	}
}
