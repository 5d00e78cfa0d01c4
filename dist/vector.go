package dist

import "github.com/shoal-mp/shoal/tensor"

// A vector is the bytes of some tensors, one after another.
type vector struct {
	parts [][]byte
	size  int
}

func (v *vector) reset() { clear(v.parts); v.parts, v.size = v.parts[:0], 0 }

// add appends a contiguous tensor, which stays open and reachable while the vector is used.
func (v *vector) add(t *tensor.Tensor) {
	v.parts = append(v.parts, tensor.Bytes(t))
	v.size += t.Nbytes()
}

// read copies the bytes from at on to all of dst.
func (v *vector) read(at int, dst []byte) {
	v.pieces(at, dst, func(own, other []byte) { copy(other, own) })
}

// write copies src to the bytes from at on.
func (v *vector) write(at int, src []byte) {
	v.pieces(at, src, func(own, other []byte) { copy(own, other) })
}

// pieces visits the bytes from at on beside as many others.
func (v *vector) pieces(at int, others []byte, visit func(own, other []byte)) {
	for _, p := range v.parts {
		if at >= len(p) {
			at -= len(p)
			continue
		}
		n := min(len(p)-at, len(others))
		visit(p[at:at+n], others[:n])
		if others = others[n:]; len(others) == 0 {
			return
		}
		at = 0
	}
}
