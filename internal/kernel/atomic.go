package kernel

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// AxpyAtomic adds alpha·x to the first len(x) elements of y with atomic additions. Other
// goroutines or processes may add to y concurrently by atomic operations, and no addition is
// lost. Nothing else may write to x meanwhile.
func AxpyAtomic[F Float](alpha F, x, y []F) {
	y = y[:len(x)]
	for i, v := range x {
		addAtomic(&y[i], alpha*v)
	}
}

// addAtomic adds v to *p by compare-and-swap of its bits, because processors have no atomic
// addition of floats.
func addAtomic[F Float](p *F, v F) {
	if isFloat32[F]() {
		w := (*uint32)(unsafe.Pointer(p))
		for {
			old := atomic.LoadUint32(w)
			if atomic.CompareAndSwapUint32(w, old, math.Float32bits(math.Float32frombits(old)+float32(v))) {
				return
			}
		}
	}
	w := (*uint64)(unsafe.Pointer(p))
	for {
		old := atomic.LoadUint64(w)
		if atomic.CompareAndSwapUint64(w, old, math.Float64bits(math.Float64frombits(old)+float64(v))) {
			return
		}
	}
}

func loadAtomic[F Float](p *F) F {
	if isFloat32[F]() {
		return F(math.Float32frombits(atomic.LoadUint32((*uint32)(unsafe.Pointer(p)))))
	}
	return F(math.Float64frombits(atomic.LoadUint64((*uint64)(unsafe.Pointer(p)))))
}
