package nn

import (
	"iter"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// A BatchNorm2d layer moves and scales each channel to mean 0 and variance 1: over the batch while it trains, as it does
// until Eval is called, and otherwise by running statistics of the batches that it has seen.
//
// Forward changes the statistics while it trains, without a lock: goroutines and processes that train one layer may lose some
// of each other's batches in them, as in Hogwild.
type BatchNorm2d struct {
	Weight *autograd.Param // (channels)
	Bias   *autograd.Param // (channels)

	RunningMean       *tensor.Tensor // (channels)
	RunningVar        *tensor.Tensor // (channels)
	NumBatchesTracked *tensor.Tensor // Int64, a single number

	Eps      float64 // added to variances
	Momentum float64 // how much of a batch enters the statistics
	Off      bool    // set by Eval: use the running statistics
}

// NewBatchNorm2d returns a float32 layer, initialised as PyTorch's.
func NewBatchNorm2d(channels int) *BatchNorm2d {
	checkSizes("NewBatchNorm2d", channels)
	return &BatchNorm2d{
		Weight: constant("weight", 1, channels), Bias: constant("bias", 0, channels),
		RunningMean: tensor.New(tensor.Float32, channels), RunningVar: tensor.Ones(tensor.Float32, channels),
		NumBatchesTracked: tensor.New(tensor.Int64), Eps: 1e-5, Momentum: 0.1,
	}
}

// Params returns Weight and Bias.
func (b *BatchNorm2d) Params() iter.Seq[*autograd.Param] { return Params(b) }

// Forward takes x (N, channels, H, W).
func (b *BatchNorm2d) Forward(x *autograd.Var) *autograd.Var {
	if b.Off {
		return autograd.BatchNorm2dBy(b.RunningMean, b.RunningVar, x, optional(b.Weight), optional(b.Bias), b.Eps)
	}
	y, mean, variance := autograd.BatchNorm2d(x, optional(b.Weight), optional(b.Bias), b.Eps)
	if x.KeepsBuffers() {
		return y
	}
	b.RunningMean.MulScalar(1-b.Momentum).Axpy(b.Momentum, mean)
	b.RunningVar.MulScalar(1-b.Momentum).Axpy(b.Momentum, variance)
	b.NumBatchesTracked.AddScalarAtomic(1)
	return y
}

// Train switches between the batch and the running statistics.
func (b *BatchNorm2d) Train(on bool) { b.Off = !on }

// A LayerNorm layer moves and scales the elements of the last dimensions to mean 0 and variance 1.
type LayerNorm struct {
	Weight *autograd.Param // of the shape of those dimensions
	Bias   *autograd.Param // of the same, or nil
	Eps    float64         // added to variances
}

// NewLayerNorm returns a float32 layer for last dimensions of a shape, initialised as PyTorch's.
func NewLayerNorm(shape ...int) *LayerNorm {
	checkSizes("NewLayerNorm", shape...)
	return &LayerNorm{Weight: constant("weight", 1, shape...), Bias: constant("bias", 0, shape...), Eps: 1e-5}
}

// Params returns Weight and Bias.
func (l *LayerNorm) Params() iter.Seq[*autograd.Param] { return Params(l) }

// Forward takes x (..., shape).
func (l *LayerNorm) Forward(x *autograd.Var) *autograd.Var {
	return autograd.LayerNorm(x, l.Weight.Var(), optional(l.Bias), l.Eps)
}

// constant returns a parameter whose elements are all v.
func constant(name string, v float64, shape ...int) *autograd.Param {
	return autograd.NewParam(name, tensor.Full(tensor.Float32, v, shape...))
}
