package device

// A Computer is an [Engine] that also computes on its device. Package tensor calls it for tensors
// on the device, after broadcasting, dtype promotion, and all checks of shapes and overlap. Work is
// queued: a method may return before the work is done, and later calls, including Read of [Memory],
// see its result. A method returns an error of the device, or an error that wraps
// tensor.ErrUnsupported if it has no kernel for a dtype; in the latter case it must not have
// written anything.
//
// T is tensor.DType. Unless documented otherwise, all operands of a method have the same dtype.
type Computer[T any] interface {
	Engine

	// Map applies o elementwise to in and stores the result in out. All operands have out's shape,
	// which has at least one dimension, no more dimensions than necessary, and no dimension of size
	// 0. out may be the same as an element of in, but must not overlap it otherwise. For
	// comparisons, out is Bool. If an operation computes in Float32, each operand may also be
	// Float16 or BFloat16.
	//
	// In addition to the operations of package tensor, by name, Map supports Copy, which converts
	// between dtypes; Where, with a Bool as its first operand; and AddAtomic, which atomically adds
	// its operand to out (Float32, Float64, Int32 or Int64). For package autograd, it supports
	// these operations on floats: GELU(x), GELUGradient(x, dy), ReLUGradient(y, dy), Gated(x, a, b)
	// = x·σ(x·(a + b·x²)) with numbers a and b, and GatedGradient(x, dy, a, b).
	Map(o *Op, out Operand[T], in ...Operand[T]) error

	// Reduce reduces the last dimensions of in, those that out does not have, and stores the
	// results in out. out must be contiguous, and there must be at least one element per result.
	// Sums, products and variances of floats are computed in Float64, and out is Float64 or of in's
	// dtype; sums and products of integers are Int64. Extremes of Float16 and BFloat16 are Float32.
	// Argmax and Argmin yield an Int64, the row-major index within the reduced dimensions: the
	// first one of equal elements, and NaN before all numbers.
	Reduce(r Reduction, out, in Operand[T]) error

	// MatMul computes out = a·b + beta·out for a batch of matrices: out is (batch, n, m), a is
	// (batch, n, k), and b is (batch, k, m). If beta is 0, out is not read. One of the last two
	// strides of each operand must be 1, and out must be contiguous. The batch stride of a and b
	// may be 0.
	MatMul(out, a, b Operand[T], beta float64) error

	// Outside looks for an element of index (Int64) that is not in [from, to). It then calls
	// meanwhile, which may queue more work, and waits for the search only. found reports whether
	// there is such an element, and v is one of them.
	Outside(index Operand[T], from, to int64, meanwhile func()) (v int64, found bool, err error)

	// Gather sets each element of out to the element of in with the same indices, except that the
	// index in dimension dim comes from index, an Int64 of out's shape. in must have elements in
	// that dimension. Negative indices count from the end. Gather waits until the indices have been
	// checked. found reports whether an index is out of range, and v is one such index; the
	// corresponding element of out is then any element of in.
	Gather(out, in, index Operand[T], dim int) (v int64, found bool, err error)

	// Scatter is the inverse of [Computer.Gather]: it stores each element of in, which has index's
	// shape, in the element of out that index selects. If add is set, it adds them instead,
	// including all elements with the same destination. An index that is out of range selects an
	// arbitrary element of out.
	Scatter(out, in, index Operand[T], dim int, add bool) error

	// Generate sets each element of out, which must be contiguous, according to its row-major
	// index. RandomKept also reads the element of in.
	Generate(out Operand[T], s Sequence, in ...Operand[T]) error

	// Rows applies an operation that needs whole rows, where a row is the last dimension. All
	// operands must be contiguous and not empty.
	Rows(o RowOp, out Operand[T], in ...Operand[T]) error

	// Unfold (im2col) copies, for each position of a window, the elements of in that the window
	// covers to out; elements outside the image are 0. in is (n, c, h, w) and out is (n, c·KH·KW,
	// outH·outW). Both must be contiguous.
	Unfold(out, in Operand[T], w Window) error

	// Fold (col2im) is the adjoint of [Computer.Unfold]: it sets each element of out, (n, c, h, w),
	// to the sum of the elements of in that correspond to it.
	Fold(out, in Operand[T], w Window) error

	// MaxPool sets out, (n·c, outH·outW), to the maximum of each window of in, (n·c, h, w), and at
	// (Int64) to the index of the maximum in h·w: the first one of equal elements, and NaN before
	// all numbers. Padding is less than all numbers. All operands must be contiguous.
	MaxPool(out, at, in Operand[T], w Window) error

	// Descend performs one step of an optimizer. All operands must be contiguous and of the same
	// size.
	Descend(d Descent, param, grad Operand[T], state ...Operand[T]) error
}

// An Operand is a tensor on the device, or one number that is broadcast to all elements.
type Operand[T any] struct {
	Memory  Memory   // nil if the operand is a number
	Value   [16]byte // the number, in the first bytes, as many as the dtype has
	DType   T
	Offset  int   // of the first element
	Shape   []int // the tensor's shape
	Strides []int // in elements, like Offset, and not negative
}

// A Sequence tells [Computer.Generate] how to set elements. Random numbers come from Philox 4×32-10
// with the key Key and depend only on the element's row-major index i, so they do not depend on how
// the work is divided. Floats of less than 8 bytes share a counter by fours: the counter is i/4,
// and w is word i%4 of its four words. For other dtypes the counter is i: u consists of the first
// two words, the low one first, and v of the other two.
type Sequence struct {
	Kind SequenceKind
	Key  uint64
	A, B float64
	Bits int // for RandomUniform: number of random bits

	From  int64 // for RandomInteger
	Count uint64
}

// A SequenceKind is a kind of [Sequence]. Except for RandomInteger, values are computed in float64,
// or in float32 if they use w. Each step must be rounded separately, and the result is then
// converted to out's dtype.
type SequenceKind uint8

// The kinds of sequences, where i is an element's index.
const (
	Arithmetic SequenceKind = iota // A + i·B
	// RandomUniform is A + (B-A)·(u >> (64-Bits)) / 2^Bits, or A + (B-A)·(w >> (32-Bits)) / 2^Bits.
	RandomUniform
	// RandomNormal is A + B·√(-2·ln(((u>>11)+1) / 2^53))·cos(2π·(v>>11) / 2^53). For small floats
	// it uses both results of the method of Box and Muller (1958): if w and x are the first and
	// second, or the third and fourth, words of a counter, then r = √(-2·ln(w/2^32 + 2^-33)), and
	// the elements that belong to w and x are A + B·r·cos(2π·x/2^32) and A + B·r·sin(2π·x/2^32).
	RandomNormal
	// RandomBernoulli is 1 if (u>>11) / 2^53 or w/2^32 is less than A, and otherwise 0.
	RandomBernoulli
	// RandomInteger is From plus the high 64 bits of u·Count; out is Int64.
	RandomInteger
	// RandomKept is the element of in times B if RandomBernoulli is 1, and otherwise times 0. out
	// must be a float dtype, and may be the same as in.
	RandomKept
)

// A RowOp is an operation of [Computer.Rows]. Factor is the factor of NLL and of its gradient, and
// the term that Norm adds to a variance.
type RowOp struct {
	Kind   RowKind
	Factor float64
}

// A RowKind is a kind of [RowOp]. Sums are computed in Float64.
type RowKind uint8

// The kinds of row operations.
const (
	RowLogSoftmax         RowKind = iota // x - log Σ eˣ
	RowLogSoftmaxGradient                // of y and dy: dy - eʸ·Σ dy
	// RowNLL takes x, (n, classes), and a class in range for each row, (n), Int64. It sets the only
	// element of out to Factor times the sum of each row's element at its class.
	RowNLL
	// RowNLLGradient takes the classes and a number. It sets out, (n, classes), to Factor times the
	// number at each row's class, and to 0 elsewhere.
	RowNLLGradient
	RowSoftmax         // eˣ / Σ eˣ
	RowSoftmaxGradient // of y and dy: y·(dy - Σ y·dy)
	// RowNorm takes x and returns (x - mean) / √(variance + Factor), where the variance is divided
	// by the number of elements. If it also takes w and b, which have the size of a row, it
	// multiplies the result by w and adds b.
	RowNorm
	// RowNormGradient takes x and dy, or x, dy and w, and returns the gradient of x.
	RowNormGradient
)

// String returns the kind's name. It panics for a value that is not one of the kinds.
func (k RowKind) String() string {
	return [...]string{"LogSoftmax", "LogSoftmaxGradient", "NLL", "NLLGradient", "Softmax", "SoftmaxGradient",
		"Norm", "NormGradient"}[k]
}

// A Window describes how a window moves over images. Each field has the height first, then the
// width, in elements.
type Window struct{ Size, Stride, Padding [2]int }

// Out returns the number of window positions in an image of the given size, vertically and
// horizontally. The window must fit into the padded image.
func (w Window) Out(height, width int) (h, wide int) {
	out := func(n, i int) int { return (n+2*w.Padding[i]-w.Size[i])/w.Stride[i] + 1 }
	return out(height, 0), out(width, 1)
}

// A Descent is one step of an optimizer. Its parameters are those defined by torch.optim.
type Descent struct {
	Rule                 DescentRule
	N                    int64   // number of the step, from 1
	LR, WeightDecay, Eps float64 // to maximize the loss, negate LR and WeightDecay
	LRDecay              float64 // Adagrad: step N uses LR / (1 + (N-1)·LRDecay)
	Momentum, Dampening  float64 // SGD; RMSprop uses Momentum as well
	Beta1, Beta2         float64 // Adam; RMSprop's alpha is Beta2
	Nesterov             bool    // SGD
	// Adam: weight decay shrinks parameters directly instead of adding to their gradients
	Decoupled bool
	AMSGrad   bool // Adam
	Centered  bool // RMSprop
	Atomic    bool // update parameters atomically
}

// A DescentRule is an optimizer's update rule.
type DescentRule uint8

// The update rules and their state tensors.
const (
	// momentum, set to the gradient by the first step; no state if Momentum is 0
	DescendSGD DescentRule = iota
	// means of gradients and of their squares; with AMSGrad also the maximum of the latter
	DescendAdam
	DescendRMSprop // means of squares and of gradients, and the last step
	DescendAdagrad // sum of squares
)
