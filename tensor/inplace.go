package tensor

// Fill sets all elements to v, which must be in the range of an integer dtype. Like the other
// methods that change their receiver, it returns t.
func (t *Tensor) Fill(v float64) *Tensor {
	t.dtype.requireNumber("Fill", v)
	backendOf(t).fill(t, v)
	return t
}

// Zero sets all elements to 0.
func (t *Tensor) Zero() *Tensor { return t.Fill(0) }

// Add adds o in place. o is broadcast to t's shape.
func (t *Tensor) Add(o *Tensor) *Tensor { return opAdd.applyInto(t, o) }

// Sub subtracts o in place.
func (t *Tensor) Sub(o *Tensor) *Tensor { return opSub.applyInto(t, o) }

// Mul multiplies by o in place.
func (t *Tensor) Mul(o *Tensor) *Tensor { return opMul.applyInto(t, o) }

// Div divides by o in place.
func (t *Tensor) Div(o *Tensor) *Tensor { return opDiv.applyInto(t, o) }

// AddScalar adds x to each element in place.
func (t *Tensor) AddScalar(x float64) *Tensor { return opAdd.applyNumber(t, x) }

// MulScalar multiplies each element by x in place.
func (t *Tensor) MulScalar(x float64) *Tensor { return opMul.applyNumber(t, x) }

// Axpy adds alpha*x to t in place. x is broadcast to t's shape.
func (t *Tensor) Axpy(alpha float64, x *Tensor) *Tensor {
	dt := promoteOperands(t, x)
	t.requireCastable(dt)
	own := x.roundToHalf(dt)
	defer own.replaceWith(x)
	x = own
	factor := t.Number(alpha)
	defer factor.release()
	t.requireCastable(factor.dtype)
	dt = dt.computeDType()
	if dt == Bool {
		misuse(ErrOperand, "Axpy is not defined for bool")
	}
	if !backendOf(t).acceptsAnyLoop() {
		term := opMul.applyBinary(x, factor)
		defer term.release()
		return opAdd.applyInto(t, term)
	}
	if axpy := dt.numericLoops().axpy; axpy != nil {
		alpha = factor.Item()
		return rows{in: [3]DType{dt, dt}, out: dt, run: func(out, t, x, _ []byte) {
			copy(out, t) // usually the same memory
			axpy(alpha, x, out)
		}}.apply(t, t, x)
	}
	mul, add := opMul.loopsFor(dt).run, opAdd.loopsFor(dt).run
	width := dt.Size()
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	run := func(out, t, x, _ []byte) {
		buf := bufs.rows[0][:min(len(out), chunk*width)]
		scale := bufs.rows[1][:len(buf)]
		castFuncFor(dt, factor.dtype)(scale, 1, factor.contiguousBytes(), 0, len(buf)/width)
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
	least, most := t.boundNumber(lo), t.boundNumber(hi)
	defer least.release()
	defer most.release()
	t.requireCastable(opMaximum.computeDType(t, least))
	t.requireCastable(opMinimum.computeDType(t, most))
	return t.setClamped(t, lo, hi)
}

// boundNumber is like Number, for bounds that may be infinite.
func (t *Tensor) boundNumber(v float64) *Tensor {
	if t.dtype.isInteger() {
		lo, hi := t.dtype.integerRange()
		v = min(max(v, lo), hi)
	}
	return t.Number(v)
}

// integerRange returns the range of an integer dtype, as floats that can be converted to it.
func (d DType) integerRange() (lo, hi float64) {
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
func (t *Tensor) ReLU() *Tensor { return opReLU.applyInto(t) }

// Neg negates all elements.
func (t *Tensor) Neg() *Tensor { return opNeg.applyInto(t) }

// Abs replaces each element with its absolute value. It panics for complex numbers.
func (t *Tensor) Abs() *Tensor { return opAbs.applyInto(t) }

// Exp replaces each element x with e to the power of x.
func (t *Tensor) Exp() *Tensor { return opExp.applyInto(t) }

// Log replaces each element with its natural logarithm.
func (t *Tensor) Log() *Tensor { return opLog.applyInto(t) }

// Sqrt replaces each element with its square root.
func (t *Tensor) Sqrt() *Tensor { return opSqrt.applyInto(t) }

// Tanh replaces each element with its hyperbolic tangent.
func (t *Tensor) Tanh() *Tensor { return opTanh.applyInto(t) }

// Sigmoid replaces each element x with 1/(1+exp(-x)).
func (t *Tensor) Sigmoid() *Tensor { return opSigmoid.applyInto(t) }

// Pow raises each element to the power of x.
func (t *Tensor) Pow(x float64) *Tensor {
	switch {
	case x == 2 && t.dtype != Bool:
		return t.Mul(t)
	case x == 3 && t.dtype.isFloat() && backendOf(t).acceptsAnyLoop():
		return opCube.applyInto(t)
	case x == 0.5 && t.dtype.isFloat():
		return opSqrt.applyInto(t)
	case x == -0.5 && t.dtype.isFloat():
		return opRsqrt.applyInto(t)
	case x == -1 && t.dtype.isFloat():
		return opReciprocal.applyInto(t)
	}
	return opPower.applyNumber(t, x)
}

// FloorDivide divides by o in place and rounds down. It panics on division of an integer by zero.
func (t *Tensor) FloorDivide(o *Tensor) *Tensor { return opFloorDivide.applyInto(t, o) }

// Remainder replaces each element with the remainder of its division by o, which has the sign of o.
func (t *Tensor) Remainder(o *Tensor) *Tensor { return opRemainder.applyInto(t, o) }

// MaskedFill sets elements to v where mask is true. mask must be Bool; it is broadcast to t's
// shape. v must be in the range of an integer dtype.
func (t *Tensor) MaskedFill(mask *Tensor, v float64) *Tensor {
	mask.requireDType(Bool)
	t.dtype.requireNumber("MaskedFill", v)
	x := Scalar(t.dtype, v)
	defer x.release()
	return selectLoop(t.dtype).apply(t, mask, x, t)
}
