package ipc

import (
	"sync/atomic"
	"unsafe"
)

// A Number is what a Value and an Array are made of.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

// update replaces the number at p by what f makes of it, at once for everybody, and returns it; it leaves it as it is
// where f says no. Small numbers are changed with the 32-bit word around them: processors have no less.
func update[T Number](p unsafe.Pointer, f func(T) (T, bool)) T {
	if unsafe.Sizeof(*new(T)) == 8 {
		for w := (*uint64)(p); ; {
			old := atomic.LoadUint64(w)
			word := old
			v, ok := f(*(*T)(unsafe.Pointer(&word)))
			if !ok {
				return v
			}
			if *(*T)(unsafe.Pointer(&word)) = v; atomic.CompareAndSwapUint64(w, old, word) {
				return v
			}
		}
	}
	off := uintptr(p) & 3
	for w := (*uint32)(unsafe.Add(p, -int(off))); ; {
		old := atomic.LoadUint32(w)
		word := old
		at := (*T)(unsafe.Add(unsafe.Pointer(&word), off))
		v, ok := f(*at)
		if !ok {
			return v
		}
		if *at = v; atomic.CompareAndSwapUint32(w, old, word) {
			return v
		}
	}
}

func load[T Number](p unsafe.Pointer) T {
	if unsafe.Sizeof(*new(T)) == 8 {
		word := atomic.LoadUint64((*uint64)(p))
		return *(*T)(unsafe.Pointer(&word))
	}
	off := uintptr(p) & 3
	word := atomic.LoadUint32((*uint32)(unsafe.Add(p, -int(off))))
	return *(*T)(unsafe.Add(unsafe.Pointer(&word), off))
}

func store[T Number](p unsafe.Pointer, v T) {
	if unsafe.Sizeof(v) == 8 {
		atomic.StoreUint64((*uint64)(p), *(*uint64)(unsafe.Pointer(&v)))
		return
	}
	update(p, func(T) (T, bool) { return v, true })
}

func add[T Number](p unsafe.Pointer, delta T) T {
	return update(p, func(v T) (T, bool) { return v + delta, true })
}

func compareAndSwap[T Number](p unsafe.Pointer, old, v T) (swapped bool) {
	update(p, func(now T) (T, bool) {
		swapped = now == old
		return v, swapped
	})
	return swapped
}
