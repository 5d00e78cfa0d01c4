package arena

import (
	"sync/atomic"
	"unsafe"
)

// A Number is a type with values that can be read and written atomically in shared memory.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64
}

// Numbers is a slice of numbers in shared memory. All methods are atomic and may be called from
// several processes at the same time.
type Numbers[T Number] []T

// NumbersIn returns b as a slice of T, with as many elements as fit. b must be the bytes of a
// block, which are sufficiently aligned for every T.
func NumbersIn[T Number](b []byte) Numbers[T] {
	return ValuesIn[T](b)
}

// ValuesIn returns b as a slice of T, with as many elements as fit, or nil if none fits. It
// copies nothing. b must be the bytes of a block. T must have a size greater than 0 and must not
// contain pointers.
func ValuesIn[T any](b []byte) []T {
	n := len(b) / SizeOf[T]()
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}

// SizeOf returns the size of a T in bytes.
func SizeOf[T any]() int { return int(unsafe.Sizeof(*new(T))) }

// At returns element i.
func (n Numbers[T]) At(i int) T { return loadNumber[T](unsafe.Pointer(&n[i])) }

// Set sets element i to v.
func (n Numbers[T]) Set(i int, v T) { storeNumber(unsafe.Pointer(&n[i]), v) }

// Add atomically adds delta to element i and returns the sum.
func (n Numbers[T]) Add(i int, delta T) (sum T) {
	return updateNumber(unsafe.Pointer(&n[i]), func(v T) (T, bool) { return v + delta, true })
}

// CompareAndSwap atomically sets element i to v if it equals old, and reports whether it did.
func (n Numbers[T]) CompareAndSwap(i int, old, v T) (swapped bool) {
	updateNumber(unsafe.Pointer(&n[i]), func(now T) (T, bool) {
		swapped = now == old
		return v, swapped
	})
	return swapped
}

// updateNumber atomically replaces the number at p by f(old) and returns the new value. If f
// reports false, the number stays unchanged. f may be called several times. Types smaller than 32
// bits are updated by a CAS of the aligned 32-bit word that contains them, because sync/atomic has
// no smaller CAS.
func updateNumber[T Number](p unsafe.Pointer, f func(T) (T, bool)) T {
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

// loadNumber reads the number at p by an atomic load of the word that contains it.
func loadNumber[T Number](p unsafe.Pointer) T {
	if unsafe.Sizeof(*new(T)) == 8 {
		word := atomic.LoadUint64((*uint64)(p))
		return *(*T)(unsafe.Pointer(&word))
	}
	off := uintptr(p) & 3
	word := atomic.LoadUint32((*uint32)(unsafe.Add(p, -int(off))))
	return *(*T)(unsafe.Add(unsafe.Pointer(&word), off))
}

// storeNumber writes the number at p and leaves the other bytes of its word unchanged.
func storeNumber[T Number](p unsafe.Pointer, v T) {
	if unsafe.Sizeof(v) == 8 {
		atomic.StoreUint64((*uint64)(p), *(*uint64)(unsafe.Pointer(&v)))
		return
	}
	updateNumber(p, func(T) (T, bool) { return v, true })
}
