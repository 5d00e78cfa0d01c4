package tensor

import (
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
)

// An op is an elementwise operation: the number of its row in operations.
type op uint8

// An operation is a row of the table: all that is said about an operation, but the loops over rows
// of each dtype in op_rows.go where no function of numbers is enough.
type operation struct {
	device.Op

	operands rule   // the dtype that it computes in, of that where the operands meet
	result   rule   // the dtype that it makes of operands of that; nil is the same
	notBool  string // what to use instead for operands of Bool, where that is refused

	kernel  *kernel.Function           // how it computes floats
	kernel2 func(x, y, z []float32)    // how it computes Float32 of two operands
	float2  func(x, y float64) float64 // and floats else
	complex func(x complex128) complex128
}

// A rule makes a dtype of another one. nil leaves it as it is.
type rule func(DType) DType

func (r rule) of(dt DType) DType {
	if r == nil {
		return dt
	}
	return r(dt)
}

// operations are the rows.
var operations []*operation

// unaryOp adds a row of one operand, by its name here and in PyTorch, binaryOp one of two, and
// movingOp one that computes nothing.
func unaryOp(name, torch string, row operation) op  { return row.define(name, torch, 1) }
func binaryOp(name, torch string, row operation) op { return row.define(name, torch, 2) }
func movingOp(name string, arity int) op            { return new(operation).define(name, "", arity) }

func (row *operation) define(name, torch string, arity int) op {
	row.Name, row.Torch, row.Arity = name, torch, arity
	row.Truths = row.result != nil && row.result(Int64) == Bool
	operations = append(operations, row)
	return op(len(operations) - 1)
}

// Devices and tests learn of what computes when all rows are there.
func init() {
	for o, row := range operations {
		if row.Torch != "" {
			row.Apply = op(o).of
			device.Define(&row.Op)
		}
	}
}

// String returns the name of the function that applies it, such as Add.
func (o op) String() string { return operations[o].Name }

// of returns a new tensor of o applied to as many operands as it has.
func (o op) of(in ...*Tensor) *Tensor {
	if operations[o].Arity == 1 {
		return o.one(in[0])
	}
	return o.two(in[0], in[1])
}

// operands returns the dtype that o computes in where the operands meet in dt.
func (o op) operands(dt DType) DType { return operations[o].operands.of(dt) }

// result returns the dtype that o makes of operands that it computes in dt.
func (o op) result(dt DType) DType { return operations[o].result.of(dt) }

// rows returns how o is computed for operands that meet in dt.
func (o op) rows(dt DType) rows {
	dt = dt.computed()
	n := dt.numeric()
	r := rows{op: o, in: [3]DType{dt, dt, dt}, out: o.result(dt), run: n.rows[o]}
	if r.run == nil {
		misuse(ErrOperand, "%v is not defined for %v", o, dt)
	}
	if n.byOne != nil {
		r.byOne = n.byOne[o]
	}
	return r
}

// with returns how o is computed for a and b, one or two operands, which meet in dt: for floats of
// two bytes in one loop, if both have them.
func (o op) with(dt DType, a, b *Tensor) rows {
	if row := shortFloats(o, dt); row != nil && a.dtype == dt && b.dtype == dt && backendOf(a, b).fuses() {
		return rows{op: o, in: [3]DType{dt, dt, dt}, out: dt, run: row}
	}
	return o.rows(dt)
}

// meet returns the dtype that o computes in for a and b.
func (o op) meet(a, b *Tensor) DType {
	if instead := operations[o].notBool; instead != "" && (a.dtype == Bool || b.dtype == Bool) {
		misuse(ErrOperand, "%v with a tensor of bool: use %s", o, instead)
	}
	return o.operands(promote(a, b))
}

// two returns a new tensor of o applied to a and b, broadcast and promoted.
func (o op) two(a, b *Tensor) *Tensor {
	dt := o.meet(a, b)
	var room [2 * fewDims]int
	x, y := a.rounded(dt), b.rounded(dt)
	out := emptyLike(o.result(dt), broadcastInto(room[:0], a.Shape(), b.Shape()), a, b)
	o.with(dt, x, y).apply(out, x, y)
	x.become(a)
	y.become(b)
	return out
}

// rounded returns t, or a copy of its integers in dt if that is Float16 or BFloat16: PyTorch
// converts the operands to the dtype in which they meet, and then computes in Float32.
func (t *Tensor) rounded(dt DType) *Tensor {
	if dt != dt.computed() && t.dtype.isInteger() {
		return t.To(dt)
	}
	return t
}

// one returns a new tensor of o applied to a.
func (o op) one(a *Tensor) *Tensor {
	dt := o.operands(a.dtype)
	return o.with(dt, a, a).apply(emptyLike(o.result(dt), a.Shape(), a), a)
}

// into applies o to t and b, if there is one, and stores the result in t.
func (o op) into(t *Tensor, b ...*Tensor) *Tensor {
	dt := o.operands(t.dtype)
	if len(b) == 0 {
		t.wantRoom(dt)
		return o.with(dt, t, t).apply(t, t)
	}
	dt = o.meet(t, b[0])
	t.wantRoom(dt)
	x := b[0].rounded(dt)
	o.with(dt, t, x).apply(t, t, x)
	x.become(b[0])
	return t
}

// by is into with a number.
func (o op) by(t *Tensor, v float64) *Tensor {
	x := t.Number(v)
	defer x.release()
	return o.into(t, x)
}
