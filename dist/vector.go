package dist

import (
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
	"iter"
)

// tensors gives access to the device memory of tensors.
var tensors = device.OfTensors[*tensor.Tensor, tensor.DType]()

// A vector is the concatenation of the bytes of some tensors.
type vector struct {
	parts []part
	size  int
}

// A part is the memory of one contiguous tensor.
type part struct {
	of    *tensor.Tensor
	size  int
	bytes []byte        // on the host; nil for a tensor on a device
	far   device.Memory // nil for a tensor on the host
	off   int           // offset in far in bytes
}

func (v *vector) reset() { clear(v.parts); v.parts, v.size = v.parts[:0], 0 }

// appendTensor appends a contiguous tensor. The caller must keep it open and reachable while the
// vector is in use.
func (v *vector) appendTensor(t *tensor.Tensor) {
	p := part{of: t, size: t.Nbytes()}
	if p.far = tensors.Memory(t); p.far != nil {
		p.off = t.Offset() * t.DType().Size()
	} else {
		p.bytes = tensor.Bytes(t)
	}
	v.parts = append(v.parts, p)
	v.size += p.size
}

// readAt copies len(dst) bytes, starting at byte at, to dst.
func (v *vector) readAt(at int, dst []byte) error { return v.forEachPiece(at, dst, part.readAt) }

// writeAt copies src to the vector, starting at byte at.
func (v *vector) writeAt(at int, src []byte) error { return v.forEachPiece(at, src, part.writeAt) }

func (p part) readAt(at int, dst []byte) error {
	if p.far != nil {
		return p.far.Read(dst, p.off+at)
	}
	copy(dst, p.bytes[at:])
	return nil
}

func (p part) writeAt(at int, src []byte) error {
	if p.far != nil {
		return p.far.Write(p.off+at, src)
	}
	copy(p.bytes[at:], src)
	return nil
}

// forEachPiece divides the range of len(others) bytes that starts at byte at of the vector into
// pieces, one for each tensor in it. It calls move with the tensor's part, the start of the
// piece in the part, and the same piece of others, until move fails.
func (v *vector) forEachPiece(at int, others []byte, move func(p part, at int, others []byte) error) error {
	for _, p := range v.parts {
		if at >= p.size {
			at -= p.size
			continue
		}
		n := min(p.size-at, len(others))
		if err := move(p, at, others[:n]); err != nil {
			return err
		}
		if others = others[n:]; len(others) == 0 {
			return nil
		}
		at = 0
	}
	return nil
}

// A run is a range of a vector that is moved in one call of the library: a tensor, a piece of a
// large one, or several small ones. Runs depend only on the sizes of the tensors, so they are the
// same in all ranks, even if tensors are on different devices.
type run struct {
	at, n int
	part  int // index of the tensor, or -1 for several
	in    int // offset in the tensor
}

// runs returns the runs that cover the vector.
func (v *vector) runs() iter.Seq[run] {
	return func(yield func(run) bool) {
		at := 0
		for i := 0; i < len(v.parts); {
			if v.parts[i].size >= apart || len(v.parts) == 1 {
				for in := 0; in < v.parts[i].size; in += pieceBytes {
					n := min(pieceBytes, v.parts[i].size-in)
					if !yield(run{at, n, i, in}) {
						return
					}
					at += n
				}
				i++
				continue
			}
			n := 0
			for ; i < len(v.parts) && v.parts[i].size < apart && n < pieceBytes/2; i++ {
				n += v.parts[i].size
			}
			if n > 0 && !yield(run{at, n, -1, 0}) {
				return
			}
			at += n
		}
	}
}

// hostMemory returns the memory of a run, or nil unless it is contiguous and on the host.
func (r run) hostMemory(v *vector) []byte {
	if r.part < 0 || v.parts[r.part].far != nil {
		return nil
	}
	return v.parts[r.part].bytes[r.in:][:r.n]
}

// bytes returns the bytes of a run of v: the tensor's own memory if possible, or else a new
// buffer. If read is set, a new buffer is filled with the contents of the run; otherwise it is
// zero.
func (r run) bytes(v *vector, read bool) ([]byte, error) {
	if b := r.hostMemory(v); b != nil {
		return b, nil
	}
	b := make([]byte, r.n)
	if !read {
		return b, nil
	}
	return b, v.readAt(r.at, b)
}

// writeBack writes b to a run, unless b is the run's own memory.
func (r run) writeBack(v *vector, b []byte) error {
	if r.hostMemory(v) != nil && &r.hostMemory(v)[0] == &b[0] {
		return nil
	}
	return v.writeAt(r.at, b)
}

// singleMemory returns the memory of a vector, or nil unless it is a single tensor on the host.
func (v *vector) singleMemory() []byte {
	if len(v.parts) != 1 || v.parts[0].far != nil {
		return nil
	}
	return v.parts[0].bytes
}

// isMemory reports whether b is the memory of the vector.
func (v *vector) isMemory(b []byte) bool {
	own := v.singleMemory()
	return len(own) > 0 && len(b) > 0 && &own[0] == &b[0]
}

// bytesAt returns n bytes, starting at byte at: the vector's own memory if possible, or a copy
// in s, valid until s is used again.
func (v *vector) bytesAt(at, n int, s *scratch) ([]byte, error) {
	if b := v.singleMemory(); b != nil {
		return b[at:][:n], nil
	}
	b := s.grow(n)
	return b, v.readAt(at, b)
}
