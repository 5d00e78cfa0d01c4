package tensor

// two returns a new tensor of o applied to a and b, broadcast and promoted.
func (o op) two(a, b *Tensor) *Tensor {
	dt := o.meets(promote(a, b))
	out := dt
	if o.compares() {
		out = Bool
	}
	return o.rows(dt).apply(New(out, broadcast(a.shape, b.shape)...), a, b)
}

// into applies o to t and b and stores the result in t.
func (o op) into(t, b *Tensor) *Tensor {
	dt := o.meets(promote(t, b))
	t.wantRoom(dt)
	return o.rows(dt).apply(t, t, b)
}

// one returns a new tensor of o applied to a.
func (o op) one(a *Tensor) *Tensor {
	dt := o.meets(a.dtype)
	return o.rows(dt).apply(New(dt, a.shape...), a)
}

// self applies o to t in place.
func (o op) self(t *Tensor) *Tensor {
	dt := o.meets(t.dtype)
	t.wantRoom(dt)
	return o.rows(dt).apply(t, t)
}

// meets returns the dtype of the operation where the operands' is dt.
func (o op) meets(dt DType) DType {
	switch o {
	case opDiv, opExp, opLog, opSqrt, opTanh, opSigmoid:
		return dt.floating()
	}
	return dt
}

func (o op) rows(dt DType) rows {
	dt = dt.computed()
	out := dt
	if o.compares() {
		out = Bool
	}
	return rows{in: [3]DType{dt, dt, dt}, out: out, run: o.on(dt)}
}

// scalar returns v as an operand of t, which keeps its dtype. A fraction does not go into integers.
func (t *Tensor) scalar(v float64) *Tensor {
	dt := t.dtype.computed()
	if dt.category() < 2 && v != float64(int64(v)) {
		misuse("scalar %v for a tensor of %v: convert the tensor with To first", v, t.dtype)
	}
	if dt == Bool && v != 0 && v != 1 {
		misuse("scalar %v for a tensor of bool: convert the tensor with To first", v)
	}
	s := New(dt)
	b := raw([]float64{v})
	caster(dt, Float64)(s.span(), 1, b, 1, 1)
	return s
}

// Add returns a+b, Sub a-b, Mul a*b, elementwise. Operands are broadcast, and their dtypes promoted as in PyTorch.
func Add(a, b *Tensor) *Tensor { return opAdd.two(a, b) }

// Sub returns a-b.
func Sub(a, b *Tensor) *Tensor { return opSub.two(a, b) }

// Mul returns a*b.
func Mul(a, b *Tensor) *Tensor { return opMul.two(a, b) }

// Div returns a/b; quotients of integers are Float32.
func Div(a, b *Tensor) *Tensor { return opDiv.two(a, b) }

// Maximum returns the greater of each pair of elements; NaN where one of them is NaN.
func Maximum(a, b *Tensor) *Tensor { return opMax.two(a, b) }

// Minimum returns the lesser of each pair of elements; NaN where one of them is NaN.
func Minimum(a, b *Tensor) *Tensor { return opMin.two(a, b) }

// Pow returns a to the power of x.
func Pow(a *Tensor, x float64) *Tensor { return opPow.two(a, a.scalar(x)) }

// Eq returns where a and b are equal, as Bool; Ne, Lt, Le, Gt and Ge compare likewise.
func Eq(a, b *Tensor) *Tensor { return opEq.two(a, b) }

// Ne returns a != b.
func Ne(a, b *Tensor) *Tensor { return opNe.two(a, b) }

// Lt returns a < b.
func Lt(a, b *Tensor) *Tensor { return opLt.two(a, b) }

// Le returns a <= b.
func Le(a, b *Tensor) *Tensor { return opLe.two(a, b) }

// Gt returns a > b.
func Gt(a, b *Tensor) *Tensor { return opGt.two(a, b) }

// Ge returns a >= b.
func Ge(a, b *Tensor) *Tensor { return opGe.two(a, b) }

// Neg returns -a.
func Neg(a *Tensor) *Tensor { return opNeg.one(a) }

// Relu returns the greater of a and 0.
func Relu(a *Tensor) *Tensor { return opRelu.one(a) }

// Sign returns -1, 0 or 1.
func Sign(a *Tensor) *Tensor { return opSign.one(a) }

// Exp returns e to the power of a. Like Log, Sqrt, Tanh and Sigmoid it makes Float32 of integers.
func Exp(a *Tensor) *Tensor { return opExp.one(a) }

// Log returns the natural logarithm.
func Log(a *Tensor) *Tensor { return opLog.one(a) }

// Sqrt returns the square root.
func Sqrt(a *Tensor) *Tensor { return opSqrt.one(a) }

// Tanh returns the hyperbolic tangent.
func Tanh(a *Tensor) *Tensor { return opTanh.one(a) }

// Sigmoid returns 1/(1+exp(-a)).
func Sigmoid(a *Tensor) *Tensor { return opSigmoid.one(a) }

// Abs returns the magnitude, which of complex numbers is real.
func Abs(a *Tensor) *Tensor {
	switch a.dtype {
	case Complex64:
		r := rows{in: [3]DType{Complex64}, out: Float32, run: single(complexAbsRow[complex64, float32])}
		return r.apply(New(Float32, a.shape...), a)
	case Complex128:
		r := rows{in: [3]DType{Complex128}, out: Float64, run: single(complexAbsRow[complex128, float64])}
		return r.apply(New(Float64, a.shape...), a)
	}
	return opAbs.one(a)
}

// Where returns a's elements where c is true and b's elsewhere; all three are broadcast. c is Bool.
func Where(c, a, b *Tensor) *Tensor {
	c.want(Bool)
	dt := promote(a, b)
	r := rows{in: [3]DType{Bool, dt, dt}, out: dt, run: selectRow(dt.Size())}
	return r.apply(New(dt, broadcast(c.shape, a.shape, b.shape)...), c, a, b)
}

func selectRow(size int) rowFunc {
	return func(out []byte, in [3][]byte) {
		for i, yes := range in[0] {
			from := in[2]
			if yes != 0 {
				from = in[1]
			}
			copy(out[i*size:(i+1)*size], from[i*size:])
		}
	}
}
