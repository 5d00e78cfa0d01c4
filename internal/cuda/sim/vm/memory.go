package vm

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// A Region is a range of device memory that a kernel may access, which begins at the address
// Base. A kernel that writes to it fails if ReadOnly is set.
type Region struct {
	Base     uint64
	Bytes    []byte
	ReadOnly bool
}

// A Fault is the error of a kernel that performed an illegal operation. Address and Size, in
// bytes, are those of the access; Size is 0 if the operation was not an access.
type Fault struct {
	Entry   string
	Line    int // line of the text
	Address uint64
	Size    int
	Kind    FaultKind
}

// A FaultKind is the kind of an illegal operation.
type FaultKind string

// Kinds of faults.
const (
	IllegalAddress    FaultKind = "illegal address"
	MisalignedAddress FaultKind = "misaligned address"
	PartedBarrier     FaultKind = "a barrier that not all threads of a warp come to together"
)

func (f *Fault) Error() string {
	if f.Size == 0 {
		return fmt.Sprintf("ptx: %s, line %d: %s", f.Entry, f.Line, f.Kind)
	}
	return fmt.Sprintf("ptx: %s, line %d: %s: %d bytes at %#x", f.Entry, f.Line, f.Kind, f.Size, f.Address)
}

// bytesAt returns the n bytes at an address in the space of in. It panics with a [*Fault] if
// the address is not aligned to n or the access is not allowed.
func (w *warp) bytesAt(in *instruction, address uint64, n int) []byte {
	if address%uint64(n) != 0 {
		panic(&Fault{w.entry.Name, in.line, address, n, MisalignedAddress})
	}
	switch in.space {
	case inShared:
		if b := (&Region{Bytes: w.shared}).regionBytes(address, n); b != nil {
			return b
		}
	case inParam:
		if b := (&Region{Bytes: w.args}).regionBytes(address, n); b != nil {
			return b
		}
	default:
		if b := w.recent.regionBytes(address, n); b != nil && (!w.recent.ReadOnly || in.kind == loads) {
			return b
		}
		for _, r := range w.memory {
			if b := r.regionBytes(address, n); b != nil && (!r.ReadOnly || in.kind == loads) {
				w.recent = r
				return b
			}
		}
	}
	panic(&Fault{w.entry.Name, in.line, address, n, IllegalAddress})
}

func (r *Region) regionBytes(address uint64, n int) []byte {
	off := address - r.Base
	if off >= uint64(len(r.Bytes)) || uint64(n) > uint64(len(r.Bytes))-off {
		return nil
	}
	return r.Bytes[off:][:n]
}

// load executes a load for a lane. It panics with a [*Fault] if the address is illegal.
func (w *warp) load(in *instruction, lane int) {
	b := w.bytesAt(in, w.rows[in.address][lane]+in.offset, in.size*len(in.vector))
	for i, row := range in.vector {
		w.rows[row][lane] = get(b[i*in.size:], in.size, in.signed)
	}
}

// store executes a store for a lane. It panics with a [*Fault] if the address is illegal.
func (w *warp) store(in *instruction, lane int) {
	b := w.bytesAt(in, w.rows[in.address][lane]+in.offset, in.size*len(in.vector))
	for i, row := range in.vector {
		putWord(b[i*in.size:], in.size, w.rows[row][lane])
	}
}

func get(b []byte, size int, signed bool) uint64 {
	switch size {
	case 1:
		if signed {
			return uint64(int8(b[0]))
		}
		return uint64(b[0])
	case 2:
		v := binary.NativeEndian.Uint16(b)
		if signed {
			return uint64(int16(v))
		}
		return uint64(v)
	case 4:
		v := binary.NativeEndian.Uint32(b)
		if signed {
			return uint64(int32(v))
		}
		return uint64(v)
	}
	return binary.NativeEndian.Uint64(b)
}

func putWord(b []byte, size int, v uint64) {
	switch size {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(b, uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(b, uint32(v))
	default:
		binary.NativeEndian.PutUint64(b, v)
	}
}

// update executes an atomic instruction for a lane. It is atomic with respect to other threads,
// goroutines and processes. It panics with a [*Fault] if the address is illegal.
func (w *warp) update(in *instruction, lane int) {
	b := w.bytesAt(in, w.rows[in.address][lane]+in.offset, in.size)
	x, y := w.registerRow(in.a, lane), w.registerRow(in.b, lane)
	var old uint64
	if in.size == 4 {
		p := (*uint32)(unsafe.Pointer(&b[0]))
		for {
			v := atomic.LoadUint32(p)
			if old = uint64(v); atomic.CompareAndSwapUint32(p, v, uint32(in.f(old, x, y))) {
				break
			}
		}
	} else {
		p := (*uint64)(unsafe.Pointer(&b[0]))
		for {
			if old = atomic.LoadUint64(p); atomic.CompareAndSwapUint64(p, old, in.f(old, x, y)) {
				break
			}
		}
	}
	if in.d >= 0 {
		w.rows[in.d][lane] = old
	}
}
