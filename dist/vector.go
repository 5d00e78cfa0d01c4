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

// add appends a contiguous tensor. The caller must keep it open and reachable while the vector is
// in use.
func (v *vector) add(t *tensor.Tensor) {
	p := part{of: t, size: t.Nbytes()}
	if p.far = tensors.Memory(t); p.far != nil {
		p.off = t.Offset() * t.DType().Size()
	} else {
		p.bytes = tensor.Bytes(t)
	}
	v.parts = append(v.parts, p)
	v.size += p.size
}

// read copies len(dst) bytes, starting at byte at, to dst.
func (v *vector) read(at int, dst []byte) error { return v.pieces(at, dst, part.read) }

// write copies src to the vector, starting at byte at.
func (v *vector) write(at int, src []byte) error { return v.pieces(at, src, part.write) }

func (p part) read(at int, dst []byte) error {
	if p.far != nil {
		return p.far.Read(dst, p.off+at)
	}
	copy(dst, p.bytes[at:])
	return nil
}

func (p part) write(at int, src []byte) error {
	if p.far != nil {
		return p.far.Write(p.off+at, src)
	}
	copy(p.bytes[at:], src)
	return nil
}

// pieces calls move for the part of each tensor in the range of len(others) bytes that starts at
// byte at.
func (v *vector) pieces(at int, others []byte, move func(p part, at int, others []byte) error) error {
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

// direct returns the memory of a run, or nil unless it is contiguous and on the host.
func (r run) direct(v *vector) []byte {
	if r.part < 0 || v.parts[r.part].far != nil {
		return nil
	}
	return v.parts[r.part].bytes[r.in:][:r.n]
}

// bytes returns the bytes of a run: the tensor's own memory if possible, or else a new buffer. If
// read is set, a new buffer is filled with the contents of the run.
func (r run) bytes(v *vector, read bool) ([]byte, error) {
	if b := r.direct(v); b != nil {
		return b, nil
	}
	b := make([]byte, r.n)
	if !read {
		return b, nil
	}
	return b, v.read(r.at, b)
}

// put writes b to a run, unless b is the run's own memory.
func (r run) put(v *vector, b []byte) error {
	if r.direct(v) != nil && &r.direct(v)[0] == &b[0] {
		return nil
	}
	return v.write(r.at, b)
}

// whole returns the memory of a vector, or nil unless it is a single tensor on the host.
func (v *vector) whole() []byte {
	if len(v.parts) != 1 || v.parts[0].far != nil {
		return nil
	}
	return v.parts[0].bytes
}

// is reports whether b is the memory of the vector.
func (v *vector) is(b []byte) bool {
	own := v.whole()
	return len(own) > 0 && len(b) > 0 && &own[0] == &b[0]
}

// some returns n bytes, starting at byte at: the vector's own memory if possible, or a copy in s.
func (v *vector) some(at, n int, s *scratch) ([]byte, error) {
	if b := v.whole(); b != nil {
		return b[at:][:n], nil
	}
	b := s.of(n)
	return b, v.read(at, b)
}
