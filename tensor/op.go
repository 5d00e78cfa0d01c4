package tensor

import (
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
)

// An op is an elementwise operation: an index into operations.
type op uint8

// An operation is the description of an elementwise operation. Its loops are in op_rows.go, unless
// a function of numbers below is sufficient.
type operation struct {
	device.Op

	operands rule   // dtype of the computation, from the promoted dtype
	result   rule   // dtype of the result, from the dtype of the computation
	notBool  string // the operation to use instead if Bool is refused

	kernel  *kernel.Function           // kernel for floats
	kernel2 func(x, y, z []float32)    // kernel for Float32, if binary
	float2  func(x, y float64) float64 // fallback for floats, if binary
	complex func(x complex128) complex128
}

// A rule maps a dtype to another one. nil is the identity.
type rule func(DType) DType

func (r rule) resultDType(dt DType) DType {
	if r == nil {
		return dt
	}
	return r(dt)
}

// operations contains all operations by op.
var operations []*operation

// unaryOp, binaryOp and movingOp add an operation to operations and return its op: unaryOp and
// binaryOp one with one or two operands, with its name here and in PyTorch; movingOp one that
// copies without computing. They must only be called during package initialization.
func unaryOp(name, torch string, row operation) op  { return row.defineOp(name, torch, 1) }
func binaryOp(name, torch string, row operation) op { return row.defineOp(name, torch, 2) }
func movingOp(name string, arity int) op            { return new(operation).defineOp(name, "", arity) }

func (row *operation) defineOp(name, torch string, arity int) op {
	row.Name, row.Torch, row.Arity = name, torch, arity
	row.Truths = row.result != nil && row.result(Int64) == Bool
	operations = append(operations, row)
	return op(len(operations) - 1)
}

// Register computing operations with devices and tests after all have been defined.
func init() {
	for o, row := range operations {
		if row.Torch != "" {
			row.Apply = op(o).apply
			device.Define(&row.Op)
		}
	}
}

// String returns the name of the function that applies the operation, such as Add.
func (o op) String() string { return operations[o].Name }

// apply returns the result of o as a new tensor. The number of operands must be o's arity.
func (o op) apply(in ...*Tensor) *Tensor {
	if operations[o].Arity == 1 {
		return o.applyUnary(in[0])
	}
	return o.applyBinary(in[0], in[1])
}

// operandDType returns the dtype of o's computation for operands with promoted dtype dt.
func (o op) operandDType(dt DType) DType { return operations[o].operands.resultDType(dt) }

// resultDType returns the dtype of o's result if dt is the dtype of the computation.
func (o op) resultDType(dt DType) DType { return operations[o].result.resultDType(dt) }

// loopsFor returns the loops of o for operands with promoted dtype dt. It panics if o is not
// defined for dt.
func (o op) loopsFor(dt DType) rows {
	dt = dt.computeDType()
	n := dt.numericLoops()
	r := rows{op: o, in: [3]DType{dt, dt, dt}, out: o.resultDType(dt), run: n.rows[o]}
	if r.run == nil {
		misuse(ErrOperand, "%v is not defined for %v", o, dt)
	}
	if n.byOne != nil {
		r.byOne = n.byOne[o]
	}
	return r
}

// loopsForOperands is like loopsFor, but it returns a single loop for 16-bit floats if both
// operands have this dtype.
func (o op) loopsForOperands(dt DType, a, b *Tensor) rows {
	if row := shortFloats(o, dt); row != nil && a.dtype == dt && b.dtype == dt && backendOf(a, b).acceptsAnyLoop() {
		return rows{op: o, in: [3]DType{dt, dt, dt}, out: dt, run: row}
	}
	return o.loopsFor(dt)
}

// computeDType returns the dtype of o's computation for a and b. It panics if o refuses Bool.
func (o op) computeDType(a, b *Tensor) DType {
	if instead := operations[o].notBool; instead != "" && (a.dtype == Bool || b.dtype == Bool) {
		misuse(ErrOperand, "%v is not defined for a tensor of bool: use %s", o, instead)
	}
	return o.operandDType(promoteOperands(a, b))
}

// applyBinary returns o applied to a and b, broadcast and promoted, as a new tensor.
func (o op) applyBinary(a, b *Tensor) *Tensor {
	dt := o.computeDType(a, b)
	var room [2 * fewDims]int
	x, y := a.roundToHalf(dt), b.roundToHalf(dt)
	out := emptyLike(o.resultDType(dt), broadcastInto(room[:0], a.Shape(), b.Shape()), a, b)
	o.loopsForOperands(dt, x, y).apply(out, x, y)
	x.replaceWith(a)
	y.replaceWith(b)
	return out
}

// roundToHalf returns t, or a copy in dt if t has integers and dt is Float16 or BFloat16: PyTorch
// converts the operands to the promoted dtype, and then computes in Float32. The caller must
// close a copy with replaceWith.
func (t *Tensor) roundToHalf(dt DType) *Tensor {
	if dt != dt.computeDType() && t.dtype.isInteger() {
		return t.To(dt)
	}
	return t
}

// applyUnary returns o applied to a, as a new tensor.
func (o op) applyUnary(a *Tensor) *Tensor {
	dt := o.operandDType(a.dtype)
	return o.loopsForOperands(dt, a, a).apply(emptyLike(o.resultDType(dt), a.Shape(), a), a)
}

// applyInto applies o to t and to b, which has one tensor or none, stores the result in t, and
// returns t. It panics with ErrOperand if the result cannot be stored in t's dtype.
func (o op) applyInto(t *Tensor, b ...*Tensor) *Tensor {
	dt := o.operandDType(t.dtype)
	if len(b) == 0 {
		t.requireCastable(dt)
		return o.loopsForOperands(dt, t, t).apply(t, t)
	}
	dt = o.computeDType(t, b[0])
	t.requireCastable(dt)
	x := b[0].roundToHalf(dt)
	o.loopsForOperands(dt, t, x).apply(t, t, x)
	x.replaceWith(b[0])
	return t
}

// applyNumber is like applyInto, with a number as the second operand.
func (o op) applyNumber(t *Tensor, v float64) *Tensor {
	x := t.Number(v)
	defer x.release()
	return o.applyInto(t, x)
}
