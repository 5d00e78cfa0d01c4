//go:build cgo && linux

package main

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/shoal-mp/shoal/tensor"
)

// A span is the memory of a storage with handles in this process. With it a put finds the tensor
// that a pointer of the caller belongs to.
type span struct {
	base, size uintptr
	storage    *tensor.Storage // open while uses is not 0
	uses       int             // handles
	key        spanKey
}

// A spanKey is the class of a span's size, and its position in units of half that size. Spans do
// not overlap, so the spans of one class, which are longer than half its size, have different keys.
type spanKey struct {
	class int
	at    uintptr
}

// leastClass is the class of the smallest spans, log2 of their size.
const leastClass = 6

func keyOf(base, size uintptr) spanKey {
	class := max(bits.Len64(uint64(size-1)), leastClass)
	return spanKey{class, base >> (class - 1)}
}

// A spanTable finds spans by address. The process has one, for any goroutine.
type spanTable struct {
	mu      sync.Mutex
	byKey   map[spanKey]*span
	classes [64]int // number of spans by class
}

var spans = spanTable{byKey: make(map[spanKey]*span)}

// add counts a handle of t and returns its span, which the caller must pass to remove when the
// handle is closed. It returns nil if t is not in shared memory or has no bytes.
func (s *spanTable) add(t *tensor.Tensor) *span {
	if !t.IsShared() {
		return nil
	}
	storage := t.Storage()
	b := storage.Bytes()
	if len(b) == 0 {
		return nil
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	key := keyOf(base, uintptr(len(b)))
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.byKey[key]
	if p == nil || p.base != base {
		if p != nil {
			return nil // a block that was freed while a handle of it is being closed
		}
		p = &span{base: base, size: uintptr(len(b)), storage: storage, key: key}
		s.byKey[key] = p
		s.classes[key.class]++
	}
	p.storage = storage
	p.uses++
	return p
}

// remove drops a handle that add has counted. p may be nil.
func (s *spanTable) remove(p *span) {
	if p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.uses--; p.uses == 0 {
		delete(s.byKey, p.key)
		s.classes[p.key.class]--
	}
}

// view returns a tensor with layout l over the n bytes at addr, which must be the bytes that l
// covers and within a span. The caller must close it. ok is false, without an error, if no span
// has them or they are not aligned to elements.
func (s *spanTable) view(addr, n uintptr, l layout) (t *tensor.Tensor, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock() // the storage stays open meanwhile
	p := s.find(addr, n)
	if p == nil || (addr-p.base)%uintptr(l.dtype.Size()) != 0 {
		return nil, false, nil
	}
	t, err = p.storage.View(l.dtype, l.shape, l.strides, int(addr-p.base)/l.dtype.Size())
	return t, true, err
}

// find returns the span with the n bytes at addr, or nil. The caller must hold s.mu.
func (s *spanTable) find(addr, n uintptr) *span {
	for class, count := range s.classes {
		if count == 0 {
			continue
		}
		at := addr >> (class - 1)
		for back := uintptr(0); back <= 2 && back <= at; back++ {
			p := s.byKey[spanKey{class, at - back}]
			if p != nil && addr >= p.base && addr-p.base <= p.size && n <= p.size-(addr-p.base) {
				return p
			}
		}
	}
	return nil
}
