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

// AddInPlace adds o in place. o is broadcast to t's shape.
func (t *Tensor) AddInPlace(o *Tensor) *Tensor { return opAdd.applyInto(t, o) }

// SubInPlace subtracts o in place.
func (t *Tensor) SubInPlace(o *Tensor) *Tensor { return opSub.applyInto(t, o) }

// MulInPlace multiplies by o in place.
func (t *Tensor) MulInPlace(o *Tensor) *Tensor { return opMul.applyInto(t, o) }

// DivInPlace divides by o in place. It panics if t has integers, because the quotients are
// floats.
func (t *Tensor) DivInPlace(o *Tensor) *Tensor { return opDiv.applyInto(t, o) }

// AddScalarInPlace adds x to each element in place. It panics if t has integers and x has a
// fraction.
func (t *Tensor) AddScalarInPlace(x float64) *Tensor { return opAdd.applyNumber(t, x) }

// MulScalarInPlace multiplies each element by x in place. It panics if t has integers and x has a
// fraction.
func (t *Tensor) MulScalarInPlace(x float64) *Tensor { return opMul.applyNumber(t, x) }

// AxpyInPlace adds alpha*x to t in place. x is broadcast to t's shape.
func (t *Tensor) AxpyInPlace(alpha float64, x *Tensor) *Tensor {
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
		return rows{in: [3]DType{dt, dt}, out: dt, withNumbers: axpy, first: factor.Item()}.apply(t, t, x)
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
	return rows{in: [3]DType{dt, dt}, out: dt, run: run, serial: true}.apply(t, t, x)
}

// ClampInPlace limits the elements to the range from lo to hi in place.
func (t *Tensor) ClampInPlace(lo, hi float64) *Tensor {
	least, most := t.boundNumber(lo), t.boundNumber(hi)
	defer least.release()
	defer most.release()
	t.requireCastable(opMaximum.computeDType(t, least))
	t.requireCastable(opMinimum.computeDType(t, most))
	return t.setClamped(t, lo, hi)
}

// boundNumber is like Number, for bounds that may be infinite. For integer dtypes, it first
// limits v to the range of t's dtype.
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
	case Uint8, Uint16, Uint32:
		return 0, float64(uint64(1)<<(8*d.Size()) - 1)
	case Uint64:
		return 0, 1<<64 - 2048
	case Int64:
		return -(1 << 63), 1<<63 - 1024
	}
	half := float64(uint64(1) << (8*d.Size() - 1))
	return -half, half - 1
}

// ReLUInPlace replaces negative elements with 0.
func (t *Tensor) ReLUInPlace() *Tensor { return opReLU.applyInto(t) }

// NegInPlace negates all elements.
func (t *Tensor) NegInPlace() *Tensor { return opNeg.applyInto(t) }

// AbsInPlace replaces each element with its absolute value. It panics for complex numbers.
func (t *Tensor) AbsInPlace() *Tensor { return opAbs.applyInto(t) }

// ExpInPlace replaces each element x with e to the power of x.
func (t *Tensor) ExpInPlace() *Tensor { return opExp.applyInto(t) }

// LogInPlace replaces each element with its natural logarithm.
func (t *Tensor) LogInPlace() *Tensor { return opLog.applyInto(t) }

// SqrtInPlace replaces each element with its square root.
func (t *Tensor) SqrtInPlace() *Tensor { return opSqrt.applyInto(t) }

// TanhInPlace replaces each element with its hyperbolic tangent.
func (t *Tensor) TanhInPlace() *Tensor { return opTanh.applyInto(t) }

// SigmoidInPlace replaces each element x with 1/(1+exp(-x)).
func (t *Tensor) SigmoidInPlace() *Tensor { return opSigmoid.applyInto(t) }

// PowInPlace raises each element to the power of x. It panics under the same conditions as [Pow].
func (t *Tensor) PowInPlace(x float64) *Tensor {
	t.requireExponent(x)
	switch {
	case x == 2 && t.dtype != Bool:
		return t.MulInPlace(t)
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

// FloorDivideInPlace divides by o in place and rounds down. It panics on division of an integer by
// zero.
func (t *Tensor) FloorDivideInPlace(o *Tensor) *Tensor { return opFloorDivide.applyInto(t, o) }

// RemainderInPlace replaces each element with the remainder of its division by o, which has the
// sign of o.
func (t *Tensor) RemainderInPlace(o *Tensor) *Tensor { return opRemainder.applyInto(t, o) }

// MaskedFillInPlace sets elements to v where mask is true. mask must be Bool; it is broadcast to
// t's shape. v must be in the range of an integer dtype.
func (t *Tensor) MaskedFillInPlace(mask *Tensor, v float64) *Tensor {
	mask.requireDType(Bool)
	t.dtype.requireNumber("MaskedFill", v)
	x := Scalar(t.dtype, v)
	defer x.release()
	return selectLoop(t.dtype).apply(t, mask, x, t)
}
