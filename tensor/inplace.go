package tensor

// Fill sets all elements to v, which must be in the range of an integer dtype. Like the other
// methods that change their receiver, it returns t.
func (t *Tensor) Fill(v float64) *Tensor {
	t.dtype.wantNumber("Fill", v)
	backendOf(t).fill(t, v)
	return t
}

// Zero sets all elements to 0.
func (t *Tensor) Zero() *Tensor { return t.Fill(0) }

// Add adds o in place. o is broadcast to t's shape.
func (t *Tensor) Add(o *Tensor) *Tensor { return opAdd.into(t, o) }

// Sub subtracts o in place.
func (t *Tensor) Sub(o *Tensor) *Tensor { return opSub.into(t, o) }

// Mul multiplies by o in place.
func (t *Tensor) Mul(o *Tensor) *Tensor { return opMul.into(t, o) }

// Div divides by o in place.
func (t *Tensor) Div(o *Tensor) *Tensor { return opDiv.into(t, o) }

// AddScalar adds x to each element in place.
func (t *Tensor) AddScalar(x float64) *Tensor { return opAdd.by(t, x) }

// MulScalar multiplies each element by x in place.
func (t *Tensor) MulScalar(x float64) *Tensor { return opMul.by(t, x) }

// Axpy adds alpha*x to t in place. x is broadcast to t's shape.
func (t *Tensor) Axpy(alpha float64, x *Tensor) *Tensor {
	dt := promote(t, x)
	t.wantRoom(dt)
	own := x.rounded(dt)
	defer own.become(x)
	x = own
	factor := t.Number(alpha)
	defer factor.release()
	t.wantRoom(factor.dtype)
	dt = dt.computed()
	if dt == Bool {
		misuse(ErrOperand, "Axpy is not defined for bool")
	}
	if !backendOf(t).fuses() {
		term := opMul.two(x, factor)
		defer term.release()
		return opAdd.into(t, term)
	}
	if axpy := dt.numeric().axpy; axpy != nil {
		alpha = factor.Item()
		return rows{in: [3]DType{dt, dt}, out: dt, run: func(out, t, x, _ []byte) {
			copy(out, t) // usually the same memory
			axpy(alpha, x, out)
		}}.apply(t, t, x)
	}
	mul, add := opMul.rows(dt).run, opAdd.rows(dt).run
	width := dt.Size()
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	run := func(out, t, x, _ []byte) {
		buf := bufs.rows[0][:min(len(out), chunk*width)]
		scale := bufs.rows[1][:len(buf)]
		caster(dt, factor.dtype)(scale, 1, factor.span(), 0, len(buf)/width)
		for at := 0; at < len(out); at += len(buf) {
			n := min(len(buf), len(out)-at)
			mul(buf[:n], x[at:at+n], scale[:n], nil)
			add(out[at:at+n], t[at:at+n], buf[:n], nil)
		}
	}
	return rows{in: [3]DType{dt, dt}, out: dt, run: run}.apply(t, t, x)
}

// Clamp limits the elements to the range from lo to hi in place.
func (t *Tensor) Clamp(lo, hi float64) *Tensor {
	least, most := t.bound(lo), t.bound(hi)
	defer least.release()
	defer most.release()
	t.wantRoom(opMaximum.meet(t, least))
	t.wantRoom(opMinimum.meet(t, most))
	return t.clamp(t, lo, hi)
}

// bound is like Number, for bounds that may be infinite.
func (t *Tensor) bound(v float64) *Tensor {
	if t.dtype.isInteger() {
		lo, hi := t.dtype.limits()
		v = min(max(v, lo), hi)
	}
	return t.Number(v)
}

// limits returns the range of an integer dtype, as floats that can be converted to it.
func (d DType) limits() (lo, hi float64) {
	switch d {
	case Uint8:
		return 0, 255
	case Int64:
		return -(1 << 63), 1<<63 - 1024
	}
	half := float64(uint64(1) << (8*d.Size() - 1))
	return -half, half - 1
}

// ReLU replaces negative elements with 0.
func (t *Tensor) ReLU() *Tensor { return opReLU.into(t) }

// Neg negates all elements.
func (t *Tensor) Neg() *Tensor { return opNeg.into(t) }

// Abs replaces each element with its absolute value. It panics for complex numbers.
func (t *Tensor) Abs() *Tensor { return opAbs.into(t) }

// Exp replaces each element x with e to the power of x.
func (t *Tensor) Exp() *Tensor { return opExp.into(t) }

// Log replaces each element with its natural logarithm.
func (t *Tensor) Log() *Tensor { return opLog.into(t) }

// Sqrt replaces each element with its square root.
func (t *Tensor) Sqrt() *Tensor { return opSqrt.into(t) }

// Tanh replaces each element with its hyperbolic tangent.
func (t *Tensor) Tanh() *Tensor { return opTanh.into(t) }

// Sigmoid replaces each element x with 1/(1+exp(-x)).
func (t *Tensor) Sigmoid() *Tensor { return opSigmoid.into(t) }

// Pow raises each element to the power of x.
func (t *Tensor) Pow(x float64) *Tensor {
	switch {
	case x == 2 && t.dtype != Bool:
		return t.Mul(t)
	case x == 3 && t.dtype.isFloat() && backendOf(t).fuses():
		return opCube.into(t)
	case x == 0.5 && t.dtype.isFloat():
		return opSqrt.into(t)
	case x == -0.5 && t.dtype.isFloat():
		return opRsqrt.into(t)
	case x == -1 && t.dtype.isFloat():
		return opReciprocal.into(t)
	}
	return opPower.by(t, x)
}

// FloorDivide divides by o in place and rounds down. It panics on division of an integer by zero.
func (t *Tensor) FloorDivide(o *Tensor) *Tensor { return opFloorDivide.into(t, o) }

// Remainder replaces each element with the remainder of its division by o, which has the sign of o.
func (t *Tensor) Remainder(o *Tensor) *Tensor { return opRemainder.into(t, o) }

// MaskedFill sets elements to v where mask is true. mask must be Bool; it is broadcast to t's
// shape. v must be in the range of an integer dtype.
func (t *Tensor) MaskedFill(mask *Tensor, v float64) *Tensor {
	mask.want(Bool)
	t.dtype.wantNumber("MaskedFill", v)
	x := Scalar(t.dtype, v)
	defer x.release()
	return choice(t.dtype).apply(t, mask, x, t)
}
