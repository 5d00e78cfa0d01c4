package device

// A Computer is an Engine that computes with what is in its device's memory. Package tensor calls
// it for tensors that are there, and does the rest: broadcasting, dtypes, what may not overlap, and
// all checks of shapes. Work is queued: a method returns when its arguments have been looked at,
// and what is asked for later, Memory's Read included, sees it done. Its error is the device's own,
// or wraps tensor.ErrUnsupported where there is no kernel for a dtype; nothing was written then.
//
// T is tensor.DType, which says its size. The dtype of all operands but those that are named
// otherwise is the same.
type Computer[T any] interface {
	Engine

	// Map sets the elements of out to o of those of in, all of out's shape. That has at least one
	// dimension, no more than the layouts need, and all have elements. out may be one of in, and
	// does not overlap them otherwise. Of comparisons out is Bool. What is computed in Float32
	// reads and writes Float16 and BFloat16 as they are, each operand by itself.
	//
	// Besides the operations of package tensor, by their names, there are Copy, of two dtypes;
	// Where, whose first operand is Bool; and AddAtomic, which adds its only operand to out,
	// without a loss where others add atomically (Float32, Float64, Int32, Int64). Of package
	// autograd there are, of fractions: GELU of x, and GELUGradient of x and dy; ReLUGradient of y
	// and dy; Gated of x and the numbers a and b, x·σ(x·(a + b·x²)), and GatedGradient of x, dy, a
	// and b.
	Map(o *Op, out Operand[T], in ...Operand[T]) error

	// Reduce sets each element of out, which is contiguous, to r of those that the last dimensions
	// of in, which out does not have, hold for it: at least one. Sums, products and variances of
	// floats are computed in Float64, and out is that or of in's dtype; those of integers are
	// Int64. Of Float16 and BFloat16 extremes are Float32. Argmax and Argmin are Int64, the place
	// in row-major order of what is reduced; of equals the first, and NaN before everything.
	Reduce(r Reduction, out, in Operand[T]) error

	// MatMul sets out, (batch, n, m), to a, (batch, n, k), times b, (batch, k, m), plus beta times
	// out, which is not read where beta is 0. In each, one of the last two strides is 1; out is
	// contiguous. The stride of a batch may be 0, of a and b.
	MatMul(out, a, b Operand[T], beta float64) error

	// Outside looks for an element of index, Int64, that is less than from or not less than to,
	// calls meanwhile, which queues more, and waits for the look alone. It reports whether there is
	// one, and returns one of them.
	Outside(index Operand[T], from, to int64, meanwhile func()) (v int64, found bool, err error)

	// Gather sets each element of out to that of in at the same indices but that along dim, of
	// which in has some, which index, Int64 of out's shape, says. Negative indices count from the
	// end. It waits until the indices have been looked at. It reports whether one is out of range,
	// and returns one of them; the element of out may be any of in there.
	Gather(out, in, index Operand[T], dim int) (v int64, found bool, err error)

	// Scatter is the way back: each element of in, of index's shape, replaces that of out where the
	// index says, or is added to it, and all of those that go to one place. Where an index is out
	// of range that is any of out.
	Scatter(out, in, index Operand[T], dim int, add bool) error

	// Generate sets each element of out, which is contiguous, by its place, and RandomKept by that
	// of in.
	Generate(out Operand[T], s Sequence, in ...Operand[T]) error

	// Rows does something that needs all of a row, which is the last dimension. All operands are
	// contiguous, and not empty.
	Rows(o RowOp, out Operand[T], in ...Operand[T]) error

	// Unfold sets out, (n, c·KH·KW, outH·outW), to the elements of in, (n, c, h, w), that each
	// place of a window sees, zeros outside: im2col. Both are contiguous.
	Unfold(out, in Operand[T], w Window) error

	// Fold sets out, (n, c, h, w), to the sums of what Unfold would have put into in: col2im.
	Fold(out, in Operand[T], w Window) error

	// MaxPool sets out, (n·c, outH·outW), to the largest element of each window of in, (n·c, h, w),
	// and at, Int64, to its place in h·w: the first of equals, NaN before everything. What is
	// padded is less than everything. All are contiguous.
	MaxPool(out, at, in Operand[T], w Window) error

	// Descend takes one step of an optimizer. All operands are contiguous and of one size.
	Descend(d Descent, param, grad Operand[T], state ...Operand[T]) error
}

// An Operand is a tensor as a Computer sees it: elements of its device's memory, or one number that
// stands for all.
type Operand[T any] struct {
	Memory  Memory   // nil for a number
	Value   [16]byte // the number: as many of its bytes as the dtype has
	DType   T
	Offset  int   // of the first element
	Shape   []int // as of the tensor
	Strides []int // between neighbours; like Offset in elements, and at least 0
}

// A Sequence is how Generate sets elements. Random numbers come from Philox 4×32-10 with the key
// Key, so they do not depend on how the work is divided. Elements of fractions of less than 8 bytes
// share a counter, a fourth of their place, by fours: w is the one of its four words that place%4
// says. Of others the counter is the place: u is the first two words of what Philox makes, the
// first of them the low one, and v the other two.
type Sequence struct {
	Kind SequenceKind
	Key  uint64
	A, B float64
	Bits int // of the random part of RandomUniform

	From  int64 // of RandomInteger
	Count uint64
}

// A SequenceKind is a kind of Sequence. All is computed in float64, or what is made of w in
// float32, each step rounded by itself, and converted to out's dtype then; but for RandomInteger.
type SequenceKind uint8

// The kinds of sequences.
const (
	Arithmetic SequenceKind = iota // A + place·B
	// RandomUniform is A + (B-A)·(u >> (64-Bits)) / 2^Bits, or A + (B-A)·(w >> (32-Bits)) / 2^Bits.
	RandomUniform
	// RandomNormal is A + B·√(-2·ln(((u>>11)+1) / 2^53))·cos(2π·(v>>11) / 2^53). Of words w and x,
	// the first and the second of a counter, or the third and the fourth, it is, by the method of
	// Box and Muller (1958), A + B·√(-2·ln(w/2^32 + 2^-33)) times the cosine, and at x's place the
	// sine, of 2π·x/2^32.
	RandomNormal
	// RandomBernoulli is 1 where (u>>11) / 2^53 or w/2^32 is less than A, and 0 elsewhere.
	RandomBernoulli
	// RandomInteger is From plus the high 64 bits of u times Count; out is Int64.
	RandomInteger
	// RandomKept is in's element times B where RandomBernoulli is 1, and times 0 elsewhere; out has
	// fractions, and may be in.
	RandomKept
)

// A RowOp is what Rows does. Factor is that of NLL and its gradient, and what Norm adds to a
// variance.
type RowOp struct {
	Kind   RowKind
	Factor float64
}

// A RowKind is a kind of RowOp. Sums are computed in Float64.
type RowKind uint8

// The kinds of RowOps.
const (
	RowLogSoftmax         RowKind = iota // x - log Σ eˣ
	RowLogSoftmaxGradient                // of y and dy: dy - eʸ·Σ dy
	// RowNLL, of x, (n, classes), and a class for each row, (n), Int64 and in range, sets the one
	// element of out to the sum of what the rows have there, times Factor.
	RowNLL
	// RowNLLGradient, of the classes and a number, sets out, (n, classes), to the number times
	// Factor in the places of RowNLL, and to 0 elsewhere.
	RowNLLGradient
	RowSoftmax         // eˣ / Σ eˣ
	RowSoftmaxGradient // of y and dy: y·(dy - Σ y·dy)
	// RowNorm, of x, is (x - mean) / √(variance + Factor), where the variance is divided by the
	// number of elements; of x, w and b, which have an element for each of a row, that times w plus
	// b.
	RowNorm
	// RowNormGradient, of x and dy, or of x, dy and w, is the gradient of x.
	RowNormGradient
)

// String returns the name of the kind.
func (k RowKind) String() string {
	return [...]string{"LogSoftmax", "LogSoftmaxGradient", "NLL", "NLLGradient", "Softmax", "SoftmaxGradient",
		"Norm", "NormGradient"}[k]
}

// A Window is how a window moves over images: height first, then width.
type Window struct{ Size, Stride, Padding [2]int }

// Out returns how many places a window has in an image of h by w.
func (w Window) Out(height, width int) (h, wide int) {
	out := func(n, i int) int { return (n+2*w.Padding[i]-w.Size[i])/w.Stride[i] + 1 }
	return out(height, 0), out(width, 1)
}

// A Descent is one step of an optimizer, with the numbers of torch.optim.
type Descent struct {
	Rule                 DescentRule
	N                    int64   // of the step, from 1 on
	LR, WeightDecay, Eps float64 // the first two are negative where the loss is to become larger
	LRDecay              float64 // of Adagrad: step N has LR / (1 + (N-1)·LRDecay)
	Momentum, Dampening  float64 // of SGD; Momentum of RMSprop as well
	Beta1, Beta2         float64 // of Adam; RMSprop's alpha is Beta2
	Nesterov             bool    // SGD
	Decoupled            bool    // Adam: the decay shrinks parameters instead of entering their gradients
	AMSGrad              bool    // Adam
	Centered             bool    // RMSprop
	Atomic               bool    // what a parameter is changed by is added atomically
}

// A DescentRule is how a Descent changes parameters.
type DescentRule uint8

// The rules, and their state.
const (
	DescendSGD     DescentRule = iota // momentum, which is the gradient after the first step; none where Momentum is 0
	DescendAdam                       // the means of gradients and of their squares; of AMSGrad, the largest of those
	DescendRMSprop                    // the means of squares and of gradients, and the last step
	DescendAdagrad                    // the sum of squares
)
