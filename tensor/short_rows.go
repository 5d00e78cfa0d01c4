package tensor

import (
	"math"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// shortKind returns the kernels for a dtype of 16-bit floats; ok is false for other dtypes.
func shortKind(dt DType) (kind kernel.Short, ok bool) {
	switch dt {
	case Float16:
		return kernel.Half, true
	case BFloat16:
		return kernel.Brain, true
	}
	return 0, false
}

// shortFloats returns the loop of o for 16-bit floats, or nil if dt is another dtype or o has no
// such loop. Each element is computed in float32 and rounded once, as in the conversion through
// float32 buffers.
func shortFloats(o op, dt DType) rowFunc {
	kind, ok := shortKind(dt)
	switch {
	case ok && o <= opDiv:
		return shortTwos[kind][o]
	case ok && o == opReLU:
		return shortRelus[kind]
	case ok && o == opNeg:
		return negatedShorts
	case ok && o == opAbs:
		return absoluteShorts
	}
	return nil
}

// The sign of a 16-bit float is its highest bit. Adding the minimum int16 flips it. The absolute
// value is the larger one of both, as an integer.
var (
	negatedShorts = kernelRow(otherSign,
		func(r, a []int16) { each(r, a, func(v int16) int16 { return v ^ math.MinInt16 }) })
	absoluteShorts = kernelRow(func(r, a []int16) int {
		bufs := bufferPool.Get().(*buffers)
		defer bufferPool.Put(bufs)
		other := bytesAs[int16](bufs.rows[0][:])[:len(a)]
		k := otherSign(other, a)
		return kernel.Combine(kernel.Larger, a[:k], other[:k], r[:k])
	}, func(r, a []int16) { each(r, a, func(v int16) int16 { return v & math.MaxInt16 }) })
)

func otherSign(r, a []int16) int { return kernel.Combine(kernel.Plus, a, signBits[:len(a)], r) }

var signBits = func() (row [chunk]int16) {
	for i := range row {
		row[i] = math.MinInt16
	}
	return row
}()

// shortTwos contains the loops of Add, Sub, Mul and Div, which must be the first operations.
var (
	shortTwos  = [...][4]rowFunc{shortRows(Float16, kernel.Half), shortRows(BFloat16, kernel.Brain)}
	shortRelus = [...]rowFunc{shortRelu(kernel.Half, 0x7c00), shortRelu(kernel.Brain, 0x7f80)}
)

// shortRelu returns the loop of ReLU, given the bits of infinity. Like the kernels, it returns 0
// for -0 and below, and NaN stays NaN.
func shortRelu(s kernel.Short, infinity uint16) rowFunc {
	return func(out, x, _, _ []byte) {
		done := s.Relu(x, out)
		r, a := bytesAs[uint16](out)[done:], bytesAs[uint16](x)[done:]
		for i, v := range a[:len(r)] {
			if v >= 1<<15 && v-1<<15 <= infinity {
				v = 0
			}
			r[i] = v
		}
	}
}

func shortRows(dt DType, s kernel.Short) (all [4]rowFunc) {
	for i, a := range []kernel.Arithmetic{kernel.Sums, kernel.Differences, kernel.Products, kernel.Quotients} {
		o := op(i)
		all[i] = func(out, x, y, _ []byte) {
			if done := 2 * s.Do(a, x, y, out); done < len(out) {
				o.applyWide(dt, out[done:], x[done:], y[done:])
			}
		}
	}
	return all
}

// applyWide applies o to rows of 16-bit floats through float32 buffers.
func (o op) applyWide(dt DType, out, x, y []byte) {
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	up, down, run := castFuncFor(Float32, dt), castFuncFor(dt, Float32), o.loopsFor(Float32).run
	for len(out) > 0 {
		n := min(len(out)/2, chunk)
		a, b := bufs.rows[0][:4*n], bufs.rows[1][:4*n]
		up(a, 1, x, 1, n)
		up(b, 1, y, 1, n)
		run(a, a, b, nil)
		down(out, 1, a, 1, n)
		out, x, y = out[2*n:], x[2*n:], y[2*n:]
	}
}

// shortSums writes the sums of rows of n 16-bit floats to out. It returns false if there is no
// kernel, or if a sum overflows and must be computed in double precision. Some sums may have been
// written then.
func shortSums(out, rows *Tensor, n int) bool {
	const few = 64
	kind, ok := shortKind(rows.dtype)
	if !ok || n < few {
		return false
	}
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	sums, from, up := bytesAs[float64](out.contiguousBytes()), rows.contiguousBytes(), castFuncFor(Float32, rows.dtype)
	for i := range sums {
		row := from[2*n*i:][:2*n]
		sum, done := kind.Sum(row)
		if done == 0 {
			return false
		}
		rest := bufs.rows[0][:4*(n-done)]
		up(rest, 1, row[2*done:], 1, n-done)
		if sum += kernel.Sum64(bytesAs[float32](rest)); sum-sum != 0 {
			return false
		}
		sums[i] = sum
	}
	return true
}
