package tensor

import (
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// Constraints for the Go types of elements with native arithmetic. Booleans are uint8 with value 0
// or 1.
type (
	integer interface {
		uint8 | int8 | int16 | int32 | int64 | uint16 | uint32 | uint64
	}
	float   interface{ float32 | float64 }
	ordered interface{ integer | float }
	cplx    interface{ complex64 | complex128 }
)

// A castFunc converts n elements from src to dst. ds and ss are the distances between adjacent
// elements, in elements.
type castFunc func(dst []byte, ds int, src []byte, ss, n int)

// castFuncFor returns the conversion from dtype s to d. It rounds as Go does. Complex numbers lose
// their imaginary part, and all nonzero values become true.
func castFuncFor(d, s DType) castFunc {
	row := casters[s].Load()
	if row == nil { // instances of generic functions are allocated, so create them once
		row = castersFrom(s)
		casters[s].Store(row)
	}
	return row[d]
}

// casters contains the conversions from each dtype.
var casters [dtypes]atomic.Pointer[[dtypes]castFunc]

// kernelCasts lists the conversions with a kernel. A kernel converts as many elements as it can.
var kernelCasts = [...]struct {
	kernel.Cast
	from, to DType
}{
	{kernel.HalfToFloat32, Float16, Float32}, {kernel.Float32ToHalf, Float32, Float16},
	{kernel.BrainToFloat32, BFloat16, Float32}, {kernel.Float32ToBrain, Float32, BFloat16},
	{kernel.Uint8ToFloat32, Uint8, Float32}, {kernel.Uint8ToFloat32, Bool, Float32},
	{kernel.Int32ToFloat32, Int32, Float32}, {kernel.Float32ToInt64, Float32, Int64},
	{kernel.Int64ToFloat32, Int64, Float32}, {kernel.Float32ToFloat64, Float32, Float64},
	{kernel.Float64ToFloat32, Float64, Float32},
}

func castersFrom(s DType) *[dtypes]castFunc {
	row := new([dtypes]castFunc)
	for i := range row {
		if d := DType(i); d.valid() {
			row[d] = plainCaster(d, s)
		}
	}
	for _, c := range kernelCasts {
		if c.from == s {
			row[c.to] = withKernel(c.Do, row[c.to], c.to.Size(), s.Size())
		}
	}
	if begin := truthKernel(s); begin != nil {
		row[Bool] = withKernel(begin, row[Bool], 1, s.Size())
	}
	return row
}

// A beginFunc is a kernel that converts up to n adjacent elements and returns how many it
// converted.
type beginFunc = func(n int, dst, src []byte) int

// withKernel returns a conversion that calls the kernel begin for adjacent elements and end for
// the remaining ones. It first packs elements that are not adjacent, or unpacks them afterwards,
// if there are enough of them to gain from it. dsize and ssize are the element sizes of the
// result and of the source, in bytes.
func withKernel(begin beginFunc, end castFunc, dsize, ssize int) castFunc {
	const few = 16
	gather, scatter := copyFunc(ssize), copyFunc(dsize)
	whole := func(dst, src []byte, n int) {
		done := begin(n, dst, src)
		end(dst[done*dsize:], 1, src[done*ssize:], 1, n-done)
	}
	return func(dst []byte, ds int, src []byte, ss, n int) {
		if ds == 1 && ss == 1 {
			whole(dst, src, n)
			return
		}
		if n < few {
			end(dst, ds, src, ss, n)
			return
		}
		bufs := bufferPool.Get().(*buffers)
		defer bufferPool.Put(bufs)
		for at := 0; at < n; at += chunk {
			m := min(chunk, n-at)
			x, y := src[at*ss*ssize:], dst[at*ds*dsize:]
			if ss != 1 {
				gather(bufs.rows[0][:], 1, x, ss, m)
				x = bufs.rows[0][:]
			}
			if ds == 1 {
				whole(y, x, m)
				continue
			}
			whole(bufs.rows[1][:], x, m)
			scatter(y, ds, bufs.rows[1][:], 1, m)
		}
	}
}

// truthKernel returns a kernel that converts elements of dt to Bool, or nil if dt has none.
func truthKernel(dt DType) beginFunc {
	switch dt {
	case Uint8:
		return nonzeros[uint8]
	case Int8:
		return nonzeros[int8]
	case Int16:
		return nonzeros[int16]
	case Int32:
		return nonzeros[int32]
	case Int64:
		return nonzeros[int64]
	case Float32:
		return nonzeros[float32]
	case Float64:
		return nonzeros[float64]
	}
	return nil
}

func nonzeros[T ordered](n int, dst, src []byte) (done int) {
	x := bytesAs[T](src)
	for done < n {
		m := min(chunk, n-done)
		k := kernel.Compare(kernel.NotEqual, x[done:][:m], bytesAs[T](zeros[:])[:m], dst[done:][:m])
		if done += k; k < m {
			break
		}
	}
	return done
}

// zeros contains a chunk of zeros of any dtype. It must not be modified.
var zeros [chunk * 16]byte

func plainCaster(d, s DType) castFunc {
	if d == s {
		return copyFunc(d.Size())
	}
	switch s {
	case Bool, Uint8:
		return fromInteger[uint8](d, s)
	case Int8:
		return fromInteger[int8](d, s)
	case Int16:
		return fromInteger[int16](d, s)
	case Int32:
		return fromInteger[int32](d, s)
	case Int64:
		return fromInteger[int64](d, s)
	case Uint16:
		return fromInteger[uint16](d, s)
	case Uint32:
		return fromInteger[uint32](d, s)
	case Uint64:
		return fromInteger[uint64](d, s)
	case Float32:
		return fromFloat[float32](d, s)
	case Float64:
		return fromFloat[float64](d, s)
	case Complex64:
		return fromComplex[complex64](d, s)
	case Complex128:
		return fromComplex[complex128](d, s)
	}
	if d != Float32 {
		return castThroughFloat32(d, s)
	}
	switch s {
	case Float16:
		return castHalf[F16]
	case BFloat16:
		return castHalf[BF16]
	}
	return castFloat8(float8Formats[s])
}

func copyFunc(size int) castFunc {
	return bySize[castFunc](size, copyElements[uint8], copyElements[uint16], copyElements[uint32], copyElements[uint64],
		copyElements[complex128])
}

func copyElements[T any](dst []byte, ds int, src []byte, ss, n int) {
	d, s := bytesAs[T](dst), bytesAs[T](src)
	if ds == 1 && ss == 1 {
		copy(d[:n], s[:n])
		return
	}
	if ds == 1 && ss == 2 && n > 0 {
		var one T
		size := int(unsafe.Sizeof(one))
		done := kernel.EveryOther(size, dst[:n*size], src[:(2*n-1)*size]) / size
		d, s, n = d[done:], s[2*done:], n-done
	}
	mapElements(d, ds, s, ss, n, func(v T) T { return v })
}

func fromInteger[S integer](d, s DType) castFunc {
	switch d {
	case Uint8:
		return castReal[uint8, S]
	case Int8:
		return castReal[int8, S]
	case Int16:
		return castReal[int16, S]
	case Int32:
		return castReal[int32, S]
	case Int64:
		return castReal[int64, S]
	case Uint16:
		return castReal[uint16, S]
	case Uint32:
		return castReal[uint32, S]
	case Uint64:
		return castReal[uint64, S]
	}
	return fromReal[S](d, s)
}

func fromFloat[S float](d, s DType) castFunc {
	switch d {
	case Uint8:
		return truncateElements[uint8, S]
	case Int8:
		return truncateElements[int8, S]
	case Int16:
		return truncateElements[int16, S]
	case Int32:
		return truncateElements[int32, S]
	case Int64:
		return truncateElements[int64, S]
	case Uint16:
		return truncateElements[uint16, S]
	case Uint32:
		return truncateElements[uint32, S]
	case Uint64:
		return truncateLarge[S]
	}
	return fromReal[S](d, s)
}

// fromReal returns the conversion from s, which must be the integer or float dtype of S, to a d
// that is not an integer dtype.
func fromReal[S ordered](d, s DType) castFunc {
	switch d {
	case Bool:
		return castBool[S]
	case Float32:
		return castReal[float32, S]
	case Float64:
		return castReal[float64, S]
	case Complex64:
		return toComplex[complex64, S]
	case Complex128:
		return toComplex[complex128, S]
	}
	if s != Float32 {
		return castThroughFloat32(d, s)
	}
	switch d {
	case Float16:
		return roundingCaster(MakeF16)
	case BFloat16:
		return roundingCaster(MakeBF16)
	}
	return roundingCaster(float8Formats[d].round)
}

func fromComplex[S cplx](d, s DType) castFunc {
	switch d {
	case Bool:
		return castBool[S]
	case Complex64:
		return castComplex[complex64, S]
	case Complex128:
		return castComplex[complex128, S]
	case Float64:
		return realPart[S]
	}
	return castThrough(Float64, d, s)
}

// mapElements sets n elements of d, at distance ds, to f of n elements of s, at distance ss. It
// must stay small, so that the compiler inlines it together with f.
func mapElements[D, S any](d []D, ds int, s []S, ss, n int, f func(S) D) {
	for i := range n {
		d[i*ds] = f(s[i*ss])
	}
}

func castReal[D, S ordered](dst []byte, ds int, src []byte, ss, n int) {
	d, s := bytesAs[D](dst), bytesAs[S](src)
	if ds == 1 && ss == 1 {
		each(d[:n], s, func(v S) D { return D(v) })
		return
	}
	mapElements(d, ds, s, ss, n, func(v S) D { return D(v) })
}

// truncateElements is a castFunc from floats to integers. It converts through int64, so that
// out-of-range values wrap around.
func truncateElements[D integer, S float](dst []byte, ds int, src []byte, ss, n int) {
	if ds == 1 && ss == 1 {
		each(bytesAs[D](dst)[:n], bytesAs[S](src), func(v S) D { return D(int64(v)) })
		return
	}
	mapElements(bytesAs[D](dst), ds, bytesAs[S](src), ss, n, func(v S) D { return D(int64(v)) })
}

// truncateLarge is like truncateElements for Uint64, because its values may exceed an int64.
func truncateLarge[S float](dst []byte, ds int, src []byte, ss, n int) {
	mapElements(bytesAs[uint64](dst), ds, bytesAs[S](src), ss, n, func(v S) uint64 {
		if v >= 1<<63 {
			return uint64(v)
		}
		return uint64(int64(v))
	})
}

func castBool[S ordered | cplx](dst []byte, ds int, src []byte, ss, n int) {
	if DTypeOf[S]() == Complex64 { // zero, except for the signs
		mapElements(dst, ds, bytesAs[uint64](src), ss, n,
			func(v uint64) uint8 { return boolToUint8(v&^(1<<63|1<<31) != 0) })
		return
	}
	mapElements(dst, ds, bytesAs[S](src), ss, n, func(v S) uint8 { return boolToUint8(v != 0) })
}

func boolToUint8(b bool) uint8 { return *(*uint8)(unsafe.Pointer(&b)) }

func toComplex[D cplx, S ordered](dst []byte, ds int, src []byte, ss, n int) {
	mapElements(bytesAs[D](dst), ds, bytesAs[S](src), ss, n, func(v S) D { return D(complex(float64(v), 0)) })
}

func castComplex[D, S cplx](dst []byte, ds int, src []byte, ss, n int) {
	mapElements(bytesAs[D](dst), ds, bytesAs[S](src), ss, n, func(v S) D { return D(v) })
}

func realPart[S cplx](dst []byte, ds int, src []byte, ss, n int) {
	mapElements(bytesAs[float64](dst), ds, bytesAs[S](src), ss, n, func(v S) float64 { return real(complex128(v)) })
}

func castHalf[S interface {
	F16 | BF16
	Float32() float32
}](dst []byte, ds int, src []byte, ss, n int) {
	mapElements(bytesAs[float32](dst), ds, bytesAs[S](src), ss, n, func(v S) float32 { return v.Float32() })
}

func castFloat8(f float8Format) castFunc {
	return func(dst []byte, ds int, src []byte, ss, n int) {
		mapElements(bytesAs[float32](dst), ds, src, ss, n, f.float32)
	}
}

func roundingCaster[D F16 | BF16 | uint8](round func(float32) D) castFunc {
	return func(dst []byte, ds int, src []byte, ss, n int) {
		mapElements(bytesAs[D](dst), ds, bytesAs[float32](src), ss, n, round)
	}
}

func castThroughFloat32(d, s DType) castFunc { return castThrough(Float32, d, s) }

// castThrough returns a conversion in two steps, from s to mid and from mid to d.
func castThrough(mid, d, s DType) castFunc {
	return func(dst []byte, ds int, src []byte, ss, n int) {
		first, second := castFuncFor(mid, s), castFuncFor(d, mid)
		bufs := bufferPool.Get().(*buffers)
		defer bufferPool.Put(bufs)
		buf := bufs.rows[0][:]
		for at := 0; at < n; at += chunk {
			m := min(chunk, n-at)
			first(buf, 1, src[at*ss*s.Size():], ss, m)
			second(dst[at*ds*d.Size():], ds, buf, 1, m)
		}
	}
}

// To returns t's elements converted to dt. It returns a view if t has this dtype, and otherwise a
// copy that keeps the memory order of t's dimensions.
func (t *Tensor) To(dt DType) *Tensor {
	if dt == t.dtype {
		return t.view(t.Shape(), t.Strides(), t.offset)
	}
	return emptyLike(dt, t.Shape(), t).CopyFrom(t)
}

// CopyFrom sets the elements of t to the elements of src, broadcast to t's shape and converted to
// t's dtype. It returns t.
func (t *Tensor) CopyFrom(src *Tensor) *Tensor {
	backendOf(t, src).copy(t, src)
	return t
}

// copyLoops implements CopyFrom on the host.
func (t *Tensor) copyLoops(src *Tensor) *Tensor {
	if t.dtype == src.dtype && slices.Equal(t.Shape(), src.Shape()) && t.IsContiguous() && src.IsContiguous() {
		copyBytes(t.contiguousBytes(), src.contiguousBytes())
		runtime.KeepAlive(src)
		return t.Touch()
	}
	if t.dtype == src.dtype {
		t.requireDistinct()
		from := t.copyIfOverlapping(src)
		defer from.replaceWith(src)
		if t.copyRows(from) {
			return t.Touch()
		}
		src = from
	}
	return rows{in: [3]DType{t.dtype}, out: t.dtype, copies: true,
		run: func(out, x, _, _ []byte) { copy(out, x) }}.apply(t, src)
}

// pageBytes is a number of bytes. A goroutine copies or clears a multiple of it.
const pageBytes = 1 << 12

// clearBytes clears dst, on several goroutines if it is long.
func clearBytes(dst []byte) {
	if workers := kernel.Workers(len(dst)/pageBytes, len(dst)); workers > 1 {
		kernel.Divide(workers, len(dst), pageBytes, func(lo, hi int) { clear(dst[lo:hi]) })
	} else {
		clear(dst)
	}
}

// copyBytes copies src to dst, on several goroutines if it is long. Both must have the same length.
func copyBytes(dst, src []byte) {
	if workers := kernel.Workers(len(dst)/pageBytes, len(dst)); workers > 1 {
		kernel.Divide(workers, len(dst), pageBytes, func(lo, hi int) { copy(dst[lo:hi], src[lo:hi]) })
	} else {
		copy(dst, src)
	}
}

// Clone returns a contiguous copy on the heap, or on t's device.
func (t *Tensor) Clone() *Tensor { return t.NewEmpty(t.dtype, t.Shape()...).CopyFrom(t) }

// Contiguous returns a view of t if t is contiguous, and a copy otherwise.
func (t *Tensor) Contiguous() *Tensor {
	if t.IsContiguous() {
		return t.view(t.Shape(), t.Strides(), t.offset)
	}
	return t.Clone()
}
