package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// A BatchNorm2d layer normalises each channel to mean 0 and variance 1 (Ioffe and Szegedy, 2015).
// In training, which is the mode until Eval, it uses the statistics of the batch. In evaluation it
// uses running statistics of the batches that it was trained on.
//
// In training Forward changes the running statistics without a lock. If several processes train one
// layer, the statistics may miss some of their batches, as in Hogwild.
type BatchNorm2d struct {
	Mode

	Weight *autograd.Param // (channels), or nil, as Bias: PyTorch's affine=False
	Bias   *autograd.Param // (channels)

	// The running statistics. If the first two are nil, each batch is normalised by its own
	// statistics, after Eval as well: PyTorch's track_running_stats=False.
	RunningMean       *tensor.Tensor // (channels)
	RunningVar        *tensor.Tensor // (channels)
	NumBatchesTracked *tensor.Tensor // Int64, a single number

	Eps      float64 // added to variances
	Momentum float64 // part of a batch in the new statistics
}

// NewBatchNorm2d returns a Float32 layer, initialised as PyTorch's.
func NewBatchNorm2d(channels int) *BatchNorm2d { return newBatchNorm("NewBatchNorm2d", channels) }

func newBatchNorm(what string, channels int) *BatchNorm2d {
	checkSizes(what, channels)
	return &BatchNorm2d{
		Weight: constant("weight", 1, channels), Bias: constant("bias", 0, channels),
		RunningMean: tensor.New(tensor.Float32, channels), RunningVar: tensor.Ones(tensor.Float32, channels),
		NumBatchesTracked: tensor.New(tensor.Int64), Eps: 1e-5, Momentum: 0.1,
	}
}

// Forward takes x (N, channels, H, W).
func (b *BatchNorm2d) Forward(x *autograd.Var) *autograd.Var {
	if n := x.T().Dims(); n != 4 {
		misuse(tensor.ErrShape, "BatchNorm2d of shape %v: it takes (N, channels, H, W)", x.Shape())
	}
	return b.normalized(x)
}

func (b *BatchNorm2d) normalized(x *autograd.Var) *autograd.Var {
	w, bias := optional(b.Weight), optional(b.Bias)
	if b.Off && b.RunningMean != nil && b.RunningVar != nil {
		y, _, _ := autograd.BatchNorm(x, w, bias, b.RunningMean, b.RunningVar, b.Eps)
		return y
	}
	y, mean, variance := autograd.BatchNorm(x, w, bias, nil, nil, b.Eps)
	if b.Off || x.KeepsBuffers() || b.RunningMean == nil || b.RunningVar == nil {
		return y
	}
	b.RunningMean.MulScalar(1-b.Momentum).Axpy(b.Momentum, mean)
	b.RunningVar.MulScalar(1-b.Momentum).Axpy(b.Momentum, variance)
	b.NumBatchesTracked.AddScalarAtomic(1)
	return y
}

// A BatchNorm1d layer is a BatchNorm2d for features or sequences.
type BatchNorm1d BatchNorm2d

// NewBatchNorm1d returns a Float32 layer, initialised as PyTorch's.
func NewBatchNorm1d(channels int) *BatchNorm1d {
	return (*BatchNorm1d)(newBatchNorm("NewBatchNorm1d", channels))
}

// Forward takes x (N, channels) or (N, channels, L).
func (b *BatchNorm1d) Forward(x *autograd.Var) *autograd.Var {
	if n := x.T().Dims(); n != 2 && n != 3 {
		misuse(tensor.ErrShape, "BatchNorm1d of shape %v: it takes (N, channels) or (N, channels, L)", x.Shape())
	}
	return (*BatchNorm2d)(b).normalized(x)
}

// A LayerNorm layer normalises the last dimensions to mean 0 and variance 1 (Ba and others, 2016).
type LayerNorm struct {
	Weight *autograd.Param // of the normalised dimensions, or nil: elementwise_affine=False
	Bias   *autograd.Param // of the normalised dimensions, or nil
	Shape  []int           // sizes of the normalised dimensions, if Weight is nil
	Eps    float64         // added to variances
}

// NewLayerNorm returns a Float32 layer that normalises last dimensions of the given shape. It is
// initialised as PyTorch's.
func NewLayerNorm(shape ...int) *LayerNorm {
	checkSizes("NewLayerNorm", shape...)
	return &LayerNorm{Weight: constant("weight", 1, shape...), Bias: constant("bias", 0, shape...),
		Shape: shape, Eps: 1e-5}
}

// Forward takes x (..., shape).
func (l *LayerNorm) Forward(x *autograd.Var) *autograd.Var {
	shape := l.Shape
	if l.Weight != nil {
		shape = l.Weight.T.Shape()
	}
	return autograd.LayerNorm(x, shape, optional(l.Weight), optional(l.Bias), l.Eps)
}

// A GroupNorm layer normalises each group of channels of each example to mean 0 and variance 1 (Wu
// and He, 2018). With as many groups as channels it is PyTorch's InstanceNorm.
type GroupNorm struct {
	Weight *autograd.Param // (channels), or nil, as Bias: PyTorch's affine=False
	Bias   *autograd.Param // (channels)
	Groups int             // number of groups, which divides the number of channels
	Eps    float64         // added to variances
}

// NewGroupNorm returns a Float32 layer, initialised as PyTorch's. It panics unless groups divides
// channels.
func NewGroupNorm(groups, channels int) *GroupNorm {
	checkSizes("NewGroupNorm", groups, channels)
	checkGroups("NewGroupNorm", groups, channels)
	return &GroupNorm{Weight: constant("weight", 1, channels), Bias: constant("bias", 0, channels),
		Groups: groups, Eps: 1e-5}
}

// Forward takes x (N, channels, ...).
func (g *GroupNorm) Forward(x *autograd.Var) *autograd.Var {
	return autograd.GroupNorm(x, optional(g.Weight), optional(g.Bias), g.Groups, g.Eps)
}

func checkGroups(what string, groups int, channels ...int) {
	for _, n := range channels {
		if groups < 1 || n%groups != 0 {
			misuse(tensor.ErrArgument, "%s of %d channels in %d groups: the channels are divided evenly between them", what, n, groups)
		}
	}
}

// constant returns a parameter whose elements are all v.
func constant(name string, v float64, shape ...int) *autograd.Param {
	return autograd.NewParam(name, tensor.Full(tensor.Float32, v, shape...))
}
