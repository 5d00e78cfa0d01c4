package tensor

// Fill sets all elements to v.
func (t *Tensor) Fill(v float64) *Tensor { return t.CopyFrom(t.constant(v)) }

// constant returns v as a tensor without dimensions of t's dtype, converted as To does.
func (t *Tensor) constant(v float64) *Tensor {
	s := New(t.dtype)
	caster(t.dtype, Float64)(s.span(), 1, raw([]float64{v}), 1, 1)
	return s
}

// Zero sets all elements to 0.
func (t *Tensor) Zero() *Tensor {
	if t.IsContiguous() {
		clear(t.span())
		return t.Touch()
	}
	return t.Fill(0)
}

// Add adds o, which is broadcast to t's shape, to t in place. It panics where the result's category of dtype
// (bool, integer, float, complex) is above t's. Sub, Mul and Div do likewise.
func (t *Tensor) Add(o *Tensor) *Tensor { return opAdd.into(t, o) }

// Sub subtracts o in place.
func (t *Tensor) Sub(o *Tensor) *Tensor { return opSub.into(t, o) }

// Mul multiplies by o in place.
func (t *Tensor) Mul(o *Tensor) *Tensor { return opMul.into(t, o) }

// Div divides by o in place.
func (t *Tensor) Div(o *Tensor) *Tensor { return opDiv.into(t, o) }

// AddScalar adds x in place; a fraction cannot be added to integers.
func (t *Tensor) AddScalar(x float64) *Tensor { return opAdd.into(t, t.scalar(x)) }

// MulScalar multiplies by x in place.
func (t *Tensor) MulScalar(x float64) *Tensor { return opMul.into(t, t.scalar(x)) }

// Axpy adds alpha times x in place.
func (t *Tensor) Axpy(alpha float64, x *Tensor) *Tensor {
	dt := promote(t, x)
	t.wantRoom(dt)
	factor := t.scalar(alpha)
	dt = dt.computed()
	if dt == Bool {
		misuse("Axpy is not defined for bool")
	}
	mul, add := opMul.on(dt), opAdd.on(dt)
	width := dt.Size()
	run := func(out []byte, in [3][]byte) {
		buf := make([]byte, min(len(out), chunk*width))
		scale := make([]byte, len(buf))
		caster(dt, factor.dtype)(scale, 1, factor.span(), 0, len(buf)/width)
		for at := 0; at < len(out); at += len(buf) {
			n := min(len(buf), len(out)-at)
			mul(buf[:n], [3][]byte{in[1][at : at+n], scale[:n]})
			add(out[at:at+n], [3][]byte{in[0][at : at+n], buf[:n]})
		}
	}
	return rows{in: [3]DType{dt, dt}, out: dt, run: run}.apply(t, t, x)
}

// Clamp moves elements below lo up to lo and those above hi down to hi.
func (t *Tensor) Clamp(lo, hi float64) *Tensor {
	opMax.into(t, t.bound(lo))
	return opMin.into(t, t.bound(hi))
}

// bound is scalar for limits, which may be infinite.
func (t *Tensor) bound(v float64) *Tensor {
	if t.dtype.isInteger() {
		lo, hi := t.dtype.limits()
		return t.scalar(float64(min(max(v, lo), hi)))
	}
	return t.scalar(v)
}

// limits returns the range of an integer dtype, in floats that convert to it.
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

// Relu replaces negative elements by 0.
func (t *Tensor) Relu() *Tensor { return opRelu.self(t) }

// Exp replaces elements by e to their power. Like Log and Sqrt it panics for integers, whose results are none.
func (t *Tensor) Exp() *Tensor { return opExp.self(t) }

// Log replaces elements by their natural logarithm.
func (t *Tensor) Log() *Tensor { return opLog.self(t) }

// Sqrt replaces elements by their square root.
func (t *Tensor) Sqrt() *Tensor { return opSqrt.self(t) }

// Neg changes all signs.
func (t *Tensor) Neg() *Tensor { return opNeg.self(t) }

// Pow raises elements to the power of x.
func (t *Tensor) Pow(x float64) *Tensor { return opPow.into(t, t.scalar(x)) }
