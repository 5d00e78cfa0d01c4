package kernel

import "unsafe"

// Gather overwrites the first elements of dst with those of src at places, of four bytes each. It
// panics if dst has not so many. Places are in src: nobody looks.
func Gather(places []int, src, dst []byte) {
	if len(places) == 0 {
		return
	}
	from := unsafe.Pointer(unsafe.SliceData(src))
	to := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)/4)[:len(places)]
	done := 0
	if gather := current.gather; gather != nil {
		for i, n := range short(len(places) &^ 7) {
			gather(n, &places[i], (*byte)(from), (*byte)(unsafe.Pointer(&to[i])))
			done += n
		}
	}
	for i, p := range places[done:] {
		to[done+i] = *(*uint32)(unsafe.Add(from, 4*p))
	}
}
