package arena

import (
	"sync/atomic"
	"unsafe"
)

// A Number is a type whose values can be read and changed as a whole in shared memory.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64
}

// Numbers are numbers in shared memory. Several processes read and change each of them as a whole
// at the same time.
type Numbers[T Number] []T

// NumbersIn returns the numbers that fit into b, the bytes of a block: its beginning is aligned for
// any of them.
func NumbersIn[T Number](b []byte) Numbers[T] {
	return ValuesIn[T](b)
}

// ValuesIn returns the values that fit into b, the bytes of a block. A T has bytes, and no
// pointers.
func ValuesIn[T any](b []byte) []T {
	n := len(b) / SizeOf[T]()
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}

// SizeOf returns the bytes of a T.
func SizeOf[T any]() int { return int(unsafe.Sizeof(*new(T))) }

// At returns number i.
func (n Numbers[T]) At(i int) T { return loadNumber[T](unsafe.Pointer(&n[i])) }

// Set sets number i.
func (n Numbers[T]) Set(i int, v T) { storeNumber(unsafe.Pointer(&n[i]), v) }

// Add adds delta to number i and returns the sum. No addition is lost, whoever else adds.
func (n Numbers[T]) Add(i int, delta T) (sum T) {
	return update(unsafe.Pointer(&n[i]), func(v T) (T, bool) { return v + delta, true })
}

// CompareAndSwap sets number i to v if it equals old, and reports whether it did.
func (n Numbers[T]) CompareAndSwap(i int, old, v T) (swapped bool) {
	update(unsafe.Pointer(&n[i]), func(now T) (T, bool) {
		swapped = now == old
		return v, swapped
	})
	return swapped
}

// update replaces the number at p by what f makes of it, in one step for all processes, and returns
// the new number. It leaves the number as it is where f reports false. Small numbers are changed
// with the 32-bit word around them: processors have no less.
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

// loadNumber reads the number at p as update does.
func loadNumber[T Number](p unsafe.Pointer) T {
	if unsafe.Sizeof(*new(T)) == 8 {
		word := atomic.LoadUint64((*uint64)(p))
		return *(*T)(unsafe.Pointer(&word))
	}
	off := uintptr(p) & 3
	word := atomic.LoadUint32((*uint32)(unsafe.Add(p, -int(off))))
	return *(*T)(unsafe.Add(unsafe.Pointer(&word), off))
}

// storeNumber writes the number at p, leaving its neighbours in the word alone.
func storeNumber[T Number](p unsafe.Pointer, v T) {
	if unsafe.Sizeof(v) == 8 {
		atomic.StoreUint64((*uint64)(p), *(*uint64)(unsafe.Pointer(&v)))
		return
	}
	update(p, func(T) (T, bool) { return v, true })
}
