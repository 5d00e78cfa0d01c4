package dist

import (
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// tensors reaches the memory of tensors on devices.
var tensors = device.OfTensors[*tensor.Tensor, tensor.DType]()

// A vector is the bytes of some tensors, one after another.
type vector struct {
	parts []part
	size  int
}

// A part is the bytes of a contiguous tensor.
type part struct {
	size  int
	bytes []byte        // on the host
	far   device.Memory // on a device
	off   int           // in it
}

func (v *vector) reset() { clear(v.parts); v.parts, v.size = v.parts[:0], 0 }

// add appends a contiguous tensor, which stays open and reachable while the vector is used.
func (v *vector) add(t *tensor.Tensor) {
	p := part{size: t.Nbytes()}
	if p.far = tensors.Memory(t); p.far != nil {
		p.off = t.Offset() * t.DType().Size()
	} else {
		p.bytes = tensor.Bytes(t)
	}
	v.parts = append(v.parts, p)
	v.size += p.size
}

// read copies the bytes from at on to all of dst.
func (v *vector) read(at int, dst []byte) error { return v.pieces(at, dst, part.read) }

// write copies src to the bytes from at on.
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

// pieces moves the bytes from at on to or from as many others.
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
