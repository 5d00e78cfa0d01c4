package tensor

import (
	"math"
	"math/cmplx"
)

// The rows of one call have one length; r may be a or b.

func addRow[T ordered | cplx](r, a, b []T) {
	a, b = a[:len(r)], b[:len(r)]
	for i := range r {
		r[i] = a[i] + b[i]
	}
}

func subRow[T ordered | cplx](r, a, b []T) {
	a, b = a[:len(r)], b[:len(r)]
	for i := range r {
		r[i] = a[i] - b[i]
	}
}

func mulRow[T ordered | cplx](r, a, b []T) {
	a, b = a[:len(r)], b[:len(r)]
	for i := range r {
		r[i] = a[i] * b[i]
	}
}

func divRow[T float | cplx](r, a, b []T) {
	a, b = a[:len(r)], b[:len(r)]
	for i := range r {
		r[i] = a[i] / b[i]
	}
}

// maximumRow lets NaN win, as min and max of Go and of PyTorch do.
func maximumRow[T ordered](r, a, b []T) {
	a, b = a[:len(r)], b[:len(r)]
	for i := range r {
		r[i] = max(a[i], b[i])
	}
}

func minimumRow[T ordered](r, a, b []T) {
	a, b = a[:len(r)], b[:len(r)]
	for i := range r {
		r[i] = min(a[i], b[i])
	}
}

func powRow[T float](r, a, b []T) {
	for i := range r {
		r[i] = T(math.Pow(float64(a[i]), float64(b[i])))
	}
}

func complexPowRow[T cplx](r, a, b []T) {
	for i := range r {
		r[i] = T(cmplx.Pow(complex128(a[i]), complex128(b[i])))
	}
}

// integerPowRow wraps around as multiplication does. A negative exponent leaves 1, -1 or 0.
func integerPowRow[T integer](r, a, b []T) {
	for i := range r {
		r[i] = integerPow(a[i], b[i])
	}
}

func integerPow[T integer](base, exp T) T {
	if exp < 0 {
		switch {
		case base == 1:
			return 1
		case base+1 == 0:
			return 1 - 2*(exp&1)
		}
		return 0
	}
	result := T(1)
	for ; exp != 0; exp >>= 1 {
		if exp&1 != 0 {
			result *= base
		}
		base *= base
	}
	return result
}

func eqRow[T ordered | cplx](r []uint8, a, b []T) {
	for i := range r {
		r[i] = number(a[i] == b[i])
	}
}

func neRow[T ordered | cplx](r []uint8, a, b []T) {
	for i := range r {
		r[i] = number(a[i] != b[i])
	}
}

func ltRow[T ordered](r []uint8, a, b []T) {
	for i := range r {
		r[i] = number(a[i] < b[i])
	}
}

func leRow[T ordered](r []uint8, a, b []T) {
	for i := range r {
		r[i] = number(a[i] <= b[i])
	}
}

func gtRow[T ordered](r []uint8, a, b []T) {
	for i := range r {
		r[i] = number(a[i] > b[i])
	}
}

func geRow[T ordered](r []uint8, a, b []T) {
	for i := range r {
		r[i] = number(a[i] >= b[i])
	}
}

func negRow[T ordered | cplx](r, a []T) {
	for i := range r {
		r[i] = -a[i]
	}
}

func absRow[T ordered](r, a []T) {
	for i, v := range a[:len(r)] {
		r[i] = max(v, -v)
		if v == 0 || v > 0 {
			r[i] = v
		}
	}
}

func reluRow[T ordered](r, a []T) {
	for i, v := range a[:len(r)] {
		r[i] = max(v, 0)
	}
}

func signRow[T ordered](r, a []T) {
	for i, v := range a[:len(r)] {
		switch {
		case v > 0:
			r[i] = 1
		case v < 0:
			r[i] = 0
			r[i]--
		default:
			r[i] = v // 0 or NaN
		}
	}
}

func expRow[T float](r, a []T) {
	for i, v := range a[:len(r)] {
		r[i] = T(math.Exp(float64(v)))
	}
}

func logRow[T float](r, a []T) {
	for i, v := range a[:len(r)] {
		r[i] = T(math.Log(float64(v)))
	}
}

func sqrtRow[T float](r, a []T) {
	for i, v := range a[:len(r)] {
		r[i] = T(math.Sqrt(float64(v)))
	}
}

func tanhRow[T float](r, a []T) {
	for i, v := range a[:len(r)] {
		r[i] = T(math.Tanh(float64(v)))
	}
}

func sigmoidRow[T float](r, a []T) {
	for i, v := range a[:len(r)] {
		r[i] = T(1 / (1 + math.Exp(-float64(v))))
	}
}

func complexExpRow[T cplx](r, a []T) {
	for i, v := range a[:len(r)] {
		r[i] = T(cmplx.Exp(complex128(v)))
	}
}

func complexLogRow[T cplx](r, a []T) {
	for i, v := range a[:len(r)] {
		r[i] = T(cmplx.Log(complex128(v)))
	}
}

func complexSqrtRow[T cplx](r, a []T) {
	for i, v := range a[:len(r)] {
		r[i] = T(cmplx.Sqrt(complex128(v)))
	}
}

func complexAbsRow[T cplx, R float](r []R, a []T) {
	for i, v := range a[:len(r)] {
		r[i] = R(cmplx.Abs(complex128(v)))
	}
}
