package ipc

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A ShareableList is a fixed-length list in shared memory with elements of type nil, bool, int,
// float64, string and []byte. Every process may change elements in place. A list can be sent to
// other processes, and [Bind] binds it to a name.
//
// An element may change its type if the new value fits into the element's space. For a string or
// []byte, that is the length of the initial value, rounded up to a multiple of 8 bytes; for other
// types it is 8 bytes. Set is atomic with respect to crashes: if a process dies in Set, the element
// has its old or its new value. Goroutines of one process may use the list concurrently. Processes
// must synchronize, for example with a [Mutex], if one of them sets an element that another one
// uses. The zero ShareableList is closed.
type ShareableList struct {
	mu  sync.Mutex
	mem *Memory
}

// Layout: the number of elements (8 bytes), one entry per element, and the values. An entry
// consists of the offset and the capacity of the value (4 bytes each) and a [listWord]. Each value
// has two buffers of that capacity. Set writes to the unused buffer and then stores the word with
// the length, kind and buffer index. A buffer that a dead process left incomplete is therefore
// never read.
const (
	listHead  = 8
	listEntry = 16
)

// A listWord describes the current value of an element: length (32 bits), kind (8 bits), and buffer
// index (1 bit).
type listWord uint64

func newListWord(length int, kind byte, half int) listWord {
	return listWord(uint32(length)) | listWord(kind)<<32 | listWord(half)<<40
}

func (w listWord) length() uint64 { return uint64(uint32(w)) }
func (w listWord) kind() byte     { return byte(w >> 32) }
func (w listWord) half() int      { return int(w >> 40 & 1) }

const (
	kindNil = iota
	kindBool
	kindInt
	kindFloat
	kindString
	kindBytes

	listKinds = iota
)

// NewShareableList returns a list of the given values. Integers of all types are converted to
// int, and float32 to float64. The caller must close it. It returns [ErrType] for values of
// other types, and [ErrSize] if the list exceeds 4 GiB or an integer exceeds int64.
func NewShareableList(values ...any) (*ShareableList, error) {
	size := uint64(listHead + listEntry*len(values))
	packed := make([]packed, len(values))
	for i, v := range values {
		var err error
		if packed[i], err = packValue(v); err != nil {
			return nil, fmt.Errorf("new list: element %d: %w", i, err)
		}
		size += 2 * packed[i].capacity()
	}
	if size > math.MaxUint32 {
		return nil, fmt.Errorf("new list of %d bytes: %w", size, ErrSize)
	}
	mem, err := NewMemory("", int(size))
	if err != nil {
		return nil, fmt.Errorf("new list: %w", err)
	}
	l := &ShareableList{mem: mem}
	b := mem.Bytes()
	binary.LittleEndian.PutUint64(b, uint64(len(values)))
	at := uint64(listHead + listEntry*len(values))
	for i, p := range packed {
		e := b[listHead+listEntry*i:]
		binary.LittleEndian.PutUint32(e, uint32(at))
		binary.LittleEndian.PutUint32(e[4:], uint32(p.capacity()))
		at += 2 * p.capacity()
		l.entry(b, i).storeValue(p)
	}
	return l, nil
}

// A packed value is the encoding of an element: its kind and its bytes. The kind is one of the
// constants from kindNil to kindBytes.
type packed struct {
	kind  byte
	bytes []byte
}

func (p packed) capacity() uint64 { return uint64(max(len(p.bytes), 1)+7) &^ 7 }

func packValue(v any) (packed, error) {
	var bits uint64
	kind := byte(kindInt)
	switch v := v.(type) {
	case nil:
		return packed{kind: kindNil}, nil
	case string:
		return packed{kindString, []byte(v)}, nil
	case []byte:
		return packed{kindBytes, v}, nil
	case bool:
		if kind = kindBool; v {
			bits = 1
		}
	case float32:
		kind, bits = kindFloat, math.Float64bits(float64(v))
	case float64:
		kind, bits = kindFloat, math.Float64bits(v)
	default:
		n, err := toInt64(v)
		if err != nil {
			return packed{}, err
		}
		bits = uint64(n)
	}
	return packed{kind, binary.LittleEndian.AppendUint64(nil, bits)}, nil
}

func toInt64(v any) (int64, error) {
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return r.Int(), nil
	case r.CanUint() && r.Uint() > math.MaxInt64:
		return 0, fmt.Errorf("integer %d exceeds int64: %w", v, ErrSize)
	case r.CanUint():
		return int64(r.Uint()), nil
	}
	return 0, fmt.Errorf("%w: got %T, want nil, bool, an integer, a float, string or []byte", ErrType, v)
}

// A place refers to an element in the list's memory: its word and its two buffers.
type place struct {
	word   *atomic.Uint64
	halves [2][]byte
}

// entry returns the place of element i in the list's memory b, where i must be in range. It
// validates the offset and capacity, because any process may have corrupted the list; an invalid
// entry has empty buffers, so its capacity is 0.
func (l *ShareableList) entry(b []byte, i int) place {
	e := b[listHead+listEntry*i:][:listEntry]
	p := place{word: &sys.Words(e[8:])[0]}
	table := listHead + listEntry*min(binary.LittleEndian.Uint64(b), uint64(len(b))/listEntry)
	at, room := uint64(binary.LittleEndian.Uint32(e)), uint64(binary.LittleEndian.Uint32(e[4:]))
	if at >= table && at+2*room <= uint64(len(b)) {
		p.halves = [2][]byte{b[at:][:room], b[at+room:][:room]}
	}
	return p
}

func (p place) capacity() int { return len(p.halves[0]) }

func (p place) storeValue(v packed) { p.word.Store(uint64(p.writeUnused(v))) }

// writeUnused writes v, which must fit into p.capacity(), to the unused buffer. It returns the
// word that the caller must store to make v the current value.
func (p place) writeUnused(v packed) listWord {
	half := 1 - listWord(p.word.Load()).half()
	copy(p.halves[half], v.bytes)
	return newListWord(len(v.bytes), v.kind, half)
}

func (p place) loadValue() (any, error) {
	w := listWord(p.word.Load())
	n, kind := w.length(), w.kind()
	if n > uint64(p.capacity()) || kind >= listKinds || kind >= kindBool && kind <= kindFloat && n != 8 {
		return nil, fmt.Errorf("element has kind %d and %d bytes, capacity %d: %w", kind, n, p.capacity(), ErrNotList)
	}
	b := p.halves[w.half()][:n]
	switch kind {
	case kindBool:
		return b[0] != 0, nil
	case kindInt:
		return int(binary.LittleEndian.Uint64(b)), nil
	case kindFloat:
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	case kindString:
		return string(b), nil
	case kindBytes:
		return append([]byte{}, b...), nil
	}
	return nil, nil
}

// withEntry calls f with the place of element i while it holds l.mu, and returns the error of f.
// A negative i counts from the end. It returns [ErrClosed] if l is closed, and [ErrIndex] if i
// is out of range.
func (l *ShareableList) withEntry(i int, f func(place) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, b := l.openMemory()
	at := resolveIndex(i, n)
	switch {
	case b == nil:
		return ErrClosed
	case at < 0 || at >= n:
		return fmt.Errorf("element %d, length %d: %w", i, n, ErrIndex)
	}
	return f(l.entry(b, at))
}

// openMemory returns the number of elements and the list's memory, or 0 and nil if l is closed.
// The caller must hold l.mu.
func (l *ShareableList) openMemory() (int, []byte) {
	if l.mem == nil {
		return 0, nil
	}
	b := l.mem.Bytes()
	if len(b) < listHead {
		return 0, nil
	}
	n := binary.LittleEndian.Uint64(b)
	return int(min(n, uint64(len(b)-listHead)/listEntry)), b
}

// Len returns the number of elements, or 0 if l is closed.
func (l *ShareableList) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, _ := l.openMemory()
	return n
}

// At returns a copy of element i. A negative i counts from the end: -1 is the last element. It
// returns [ErrIndex] if i is out of range, [ErrNotList] if the element is corrupt, and
// [ErrClosed] if l is closed.
func (l *ShareableList) At(i int) (v any, err error) {
	err = l.withEntry(i, func(p place) error {
		v, err = p.loadValue()
		return err
	})
	return v, err
}

// Set sets element i to v in place. A negative i counts from the end. It returns [ErrIndex] if i is
// out of range, [ErrType] if v has an unsupported type, and [ErrSize] if v does not fit into the
// element's space. After an error the element is unchanged.
func (l *ShareableList) Set(i int, v any) error {
	value, err := packValue(v)
	if err != nil {
		return fmt.Errorf("set element %d: %w", i, err)
	}
	return l.withEntry(i, func(p place) error {
		if len(value.bytes) > p.capacity() {
			return fmt.Errorf("set element %d: value has %d bytes, want at most %d: %w", i, len(value.bytes),
				p.capacity(), ErrSize)
		}
		p.storeValue(value)
		return nil
	})
}

// All returns an iterator over the indices and elements. It skips elements that cannot be decoded;
// [ShareableList.At] returns the error.
func (l *ShareableList) All() iter.Seq2[int, any] {
	return func(yield func(int, any) bool) {
		for i := range l.Len() {
			if v, err := l.At(i); err == nil && !yield(i, v) {
				return
			}
		}
	}
}

// Index returns the index of the first element that equals v in type and value, after the
// conversions of [NewShareableList]. It returns -1 if there is none or if l is closed.
func (l *ShareableList) Index(v any) int {
	want, err := packValue(v)
	for i, got := range l.All() {
		if err == nil && equalsPacked(got, want) {
			return i
		}
	}
	return -1
}

// Count returns the number of elements that equal v as for [ShareableList.Index], or 0 if l is
// closed.
func (l *ShareableList) Count(v any) (n int) {
	want, err := packValue(v)
	for _, got := range l.All() {
		if err == nil && equalsPacked(got, want) {
			n++
		}
	}
	return n
}

func equalsPacked(got any, want packed) bool {
	p, err := packValue(got)
	return err == nil && p.kind == want.kind && string(p.bytes) == string(want.bytes)
}

// Close releases this process's reference. It is idempotent.
func (l *ShareableList) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mem == nil {
		return nil
	}
	return l.mem.Close()
}

// marshalWire encodes a reference to the list. The receiver gets its own reference to the same
// elements.
func (l *ShareableList) marshalWire(e *codec.Encoder) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mem == nil {
		return fmt.Errorf("send list: %w", ErrClosed)
	}
	return l.mem.marshalWire(e)
}

// unmarshalWire decodes a ShareableList. It returns [ErrNotList] if the memory does not contain a
// list.
func (l *ShareableList) unmarshalWire(d *codec.Decoder) error {
	l.mem = new(Memory)
	if err := l.mem.unmarshalWire(d); err != nil {
		return err
	}
	b := l.mem.Bytes()
	if len(b) < listHead || binary.LittleEndian.Uint64(b) > uint64(len(b)-listHead)/listEntry {
		return fmt.Errorf("receive list: element count does not fit in %d bytes: %w", len(b), ErrNotList)
	}
	return nil
}
