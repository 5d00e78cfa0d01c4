package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// BatchNorm2d is a layer that normalises each channel to mean 0 and variance 1. In training mode,
// which is the mode until [Eval], it uses the statistics of the batch. In evaluation mode it uses
// the running statistics of the training batches. See Ioffe and Szegedy, Batch Normalization, 2015,
// https://arxiv.org/abs/1502.03167.
//
// In training mode Forward updates the running statistics, unless [autograd.Scope.KeepBuffers] was
// called. It does so without a lock: if several processes train one layer, the updates of some
// batches may be lost, as in Hogwild.
type BatchNorm2d struct {
	Mode

	Weight *autograd.Param // (channels), or nil, like Bias: PyTorch's affine=False
	Bias   *autograd.Param // (channels)

	// Running statistics. If RunningMean or RunningVar is nil, each batch is normalised by its own
	// statistics, also in evaluation mode: PyTorch's track_running_stats=False.
	RunningMean       *tensor.Tensor // (channels)
	RunningVar        *tensor.Tensor // (channels)
	NumBatchesTracked *tensor.Tensor // Int64 scalar

	Eps      float64 // added to the variance for numerical stability
	Momentum float64 // weight of a batch in the updated running statistics
}

// NewBatchNorm2d returns a Float32 layer, initialised as in PyTorch. It panics with an error that
// wraps [tensor.ErrArgument] if channels is less than 1.
func NewBatchNorm2d(channels int) *BatchNorm2d { return newBatchNorm("NewBatchNorm2d", channels) }

func newBatchNorm(what string, channels int) *BatchNorm2d {
	checkSizes(what, channels)
	return &BatchNorm2d{
		Weight: constantParam("weight", 1, channels), Bias: constantParam("bias", 0, channels),
		RunningMean: tensor.New(tensor.Float32, channels), RunningVar: tensor.Ones(tensor.Float32, channels),
		NumBatchesTracked: tensor.New(tensor.Int64), Eps: 1e-5, Momentum: 0.1,
	}
}

// Forward returns x normalised. x must be (N, channels, H, W); otherwise Forward panics with an
// error that wraps [tensor.ErrShape].
func (b *BatchNorm2d) Forward(x *autograd.Var) *autograd.Var {
	if n := x.T().Dims(); n != 4 {
		misuse(tensor.ErrShape, "BatchNorm2d: got shape %v, want (N, channels, H, W)", x.Shape())
	}
	return b.normalize(x)
}

func (b *BatchNorm2d) normalize(x *autograd.Var) *autograd.Var {
	w, bias := varOrNil(b.Weight), varOrNil(b.Bias)
	if b.Off && b.RunningMean != nil && b.RunningVar != nil {
		y, _, _ := autograd.BatchNorm(x, w, bias, b.RunningMean, b.RunningVar, b.Eps)
		return y
	}
	y, mean, variance := autograd.BatchNorm(x, w, bias, nil, nil, b.Eps)
	if b.Off || x.KeepsBuffers() || b.RunningMean == nil || b.RunningVar == nil {
		return y
	}
	b.RunningMean.MulScalarInPlace(1-b.Momentum).AxpyInPlace(b.Momentum, mean)
	b.RunningVar.MulScalarInPlace(1-b.Momentum).AxpyInPlace(b.Momentum, variance)
	b.NumBatchesTracked.AddScalarAtomic(1)
	return y
}

// BatchNorm1d is like [BatchNorm2d] for features or sequences.
type BatchNorm1d BatchNorm2d

// NewBatchNorm1d returns a Float32 layer, initialised as in PyTorch. It panics with an error that
// wraps [tensor.ErrArgument] if channels is less than 1.
func NewBatchNorm1d(channels int) *BatchNorm1d {
	return (*BatchNorm1d)(newBatchNorm("NewBatchNorm1d", channels))
}

// Forward returns x normalised. x must be (N, channels) or (N, channels, L); otherwise Forward
// panics with an error that wraps [tensor.ErrShape].
func (b *BatchNorm1d) Forward(x *autograd.Var) *autograd.Var {
	if n := x.T().Dims(); n != 2 && n != 3 {
		misuse(tensor.ErrShape, "BatchNorm1d: got shape %v, want (N, channels) or (N, channels, L)", x.Shape())
	}
	return (*BatchNorm2d)(b).normalize(x)
}

// LayerNorm is a layer that normalises the last dimensions to mean 0 and variance 1. See Ba et al.,
// Layer Normalization, 2016, https://arxiv.org/abs/1607.06450.
type LayerNorm struct {
	Weight *autograd.Param // shape of the normalised dimensions, or nil: elementwise_affine=False
	Bias   *autograd.Param // shape of the normalised dimensions, or nil
	Shape  []int           // sizes of the normalised dimensions; used if Weight is nil
	Eps    float64         // added to the variance for numerical stability
}

// NewLayerNorm returns a Float32 layer that normalises trailing dimensions of the given shape. It
// is initialised as in PyTorch. It panics with an error that wraps [tensor.ErrArgument] if a size
// is less than 1.
func NewLayerNorm(shape ...int) *LayerNorm {
	checkSizes("NewLayerNorm", shape...)
	return &LayerNorm{Weight: constantParam("weight", 1, shape...), Bias: constantParam("bias", 0, shape...),
		Shape: shape, Eps: 1e-5}
}

// Forward returns x normalised. x must be (..., shape); otherwise Forward panics with an error that
// wraps [tensor.ErrShape].
func (l *LayerNorm) Forward(x *autograd.Var) *autograd.Var {
	shape := l.Shape
	if l.Weight != nil {
		shape = l.Weight.T.Shape()
	}
	return autograd.LayerNorm(x, shape, varOrNil(l.Weight), varOrNil(l.Bias), l.Eps)
}

// GroupNorm is a layer that normalises each group of channels of each example to mean 0 and
// variance 1. With as many groups as channels it is PyTorch's InstanceNorm. See Wu and He, Group
// Normalization, 2018, https://arxiv.org/abs/1803.08494.
type GroupNorm struct {
	Weight *autograd.Param // (channels), or nil, like Bias: PyTorch's affine=False
	Bias   *autograd.Param // (channels)
	Groups int             // number of groups; must divide the number of channels
	Eps    float64         // added to the variance for numerical stability
}

// NewGroupNorm returns a Float32 layer, initialised as in PyTorch. groups must divide channels, and
// both must be at least 1; otherwise NewGroupNorm panics with an error that wraps
// [tensor.ErrArgument].
func NewGroupNorm(groups, channels int) *GroupNorm {
	checkSizes("NewGroupNorm", groups, channels)
	checkGroups("NewGroupNorm", groups, channels)
	return &GroupNorm{Weight: constantParam("weight", 1, channels), Bias: constantParam("bias", 0, channels),
		Groups: groups, Eps: 1e-5}
}

// Forward returns x normalised. x must be (N, channels, ...); otherwise Forward panics with an
// error that wraps [tensor.ErrShape].
func (g *GroupNorm) Forward(x *autograd.Var) *autograd.Var {
	return autograd.GroupNorm(x, varOrNil(g.Weight), varOrNil(g.Bias), g.Groups, g.Eps)
}

func checkGroups(what string, groups int, channels ...int) {
	for _, n := range channels {
		if groups < 1 || n%groups != 0 {
			misuse(tensor.ErrArgument, "%s: %d channels are not divisible by %d groups", what, n, groups)
		}
	}
}

// constantParam returns a Float32 parameter with all elements set to v.
func constantParam(name string, v float64, shape ...int) *autograd.Param {
	return autograd.NewParam(name, tensor.Full(tensor.Float32, v, shape...))
}
