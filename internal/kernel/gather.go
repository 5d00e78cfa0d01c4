package kernel

import "unsafe"

// Gather copies the four-byte elements of src at the given places, which are element indices,
// to the beginning of dst. It panics if dst is shorter than places. The places must be valid
// indices of src: they are not checked.
func Gather(places []int, src, dst []byte) {
	if len(places) == 0 {
		return
	}
	from := unsafe.Pointer(unsafe.SliceData(src))
	to := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)/4)[:len(places)]
	done := 0
	if gather := current.gather; gather != nil {
		for i, n := range shortPieces(len(places) &^ 7) {
			gather(n, &places[i], (*byte)(from), (*byte)(unsafe.Pointer(&to[i])))
			done += n
		}
	}
	for i, p := range places[done:] {
		to[done+i] = *(*uint32)(unsafe.Add(from, 4*p))
	}
}
