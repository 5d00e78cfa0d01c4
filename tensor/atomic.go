package tensor

import (
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// AddAtomic adds o to t, with one atomic addition for each element. No addition of another
// goroutine or process is lost, provided that all writers of t use AddAtomic or
// [Tensor.AddScalarAtomic]. o is broadcast and converted. t must be Float32, Float64, Int32 or
// Int64.
func (t *Tensor) AddAtomic(o *Tensor) *Tensor {
	t.requireCastable(o.dtype)
	t.requireDistinct()
	same := o
	if o.dtype != t.dtype {
		same = o.To(t.dtype)
	}
	own := t.copyIfOverlapping(same)
	backendOf(t).addAtomic(t, own)
	own.replaceWith(same).replaceWith(o)
	return t
}

// addAtomicLoops implements AddAtomic on the host. o is broadcast, but must have t's dtype, and
// the caller must have copied it if it overlaps t.
func (t *Tensor) addAtomicLoops(o *Tensor) {
	add := t.atomicAdder()
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	w := newWalk(bufs.dims[:], t, []*Tensor{o})
	row := w.dims[len(w.dims)-1]
	size, dst, src := t.dtype.Size(), t.bytes(), o.bytes()
	w.eachRow(func(from, _, _, to int) {
		for i := range row.Size {
			add(dst[(to+i*row.Steps[output])*size:], src[(from+i*row.Steps[0])*size:])
		}
	})
	runtime.KeepAlive(o)
	t.Touch()
}

// AddScalarAtomic adds x to each element with an atomic addition, see [Tensor.AddAtomic].
func (t *Tensor) AddScalarAtomic(x float64) *Tensor {
	number := t.Number(x)
	defer number.release()
	return t.AddAtomic(number)
}

// atomicAdder returns a function that atomically adds the first element of src to the first
// element of dst. It panics with ErrOperand for dtypes that AddAtomic refuses.
func (t *Tensor) atomicAdder() func(dst, src []byte) {
	switch t.dtype {
	case Int32:
		return func(dst, src []byte) { atomic.AddInt32(&bytesAs[int32](dst[:4])[0], bytesAs[int32](src[:4])[0]) }
	case Int64:
		return func(dst, src []byte) { atomic.AddInt64(&bytesAs[int64](dst[:8])[0], bytesAs[int64](src[:8])[0]) }
	case Float32:
		return func(dst, src []byte) { addFloat32(&bytesAs[float32](dst[:4])[0], bytesAs[float32](src[:4])[0]) }
	case Float64:
		return func(dst, src []byte) { addFloat64(&bytesAs[float64](dst[:8])[0], bytesAs[float64](src[:8])[0]) }
	}
	misuse(ErrOperand, "AddAtomic is not defined for %v", t.dtype)
	return nil
}

func addFloat32(p *float32, v float32) {
	word := (*uint32)(unsafe.Pointer(p))
	for {
		old := atomic.LoadUint32(word)
		if atomic.CompareAndSwapUint32(word, old, math.Float32bits(math.Float32frombits(old)+v)) {
			return
		}
	}
}

func addFloat64(p *float64, v float64) {
	word := (*uint64)(unsafe.Pointer(p))
	for {
		old := atomic.LoadUint64(word)
		if atomic.CompareAndSwapUint64(word, old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}
