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

// A ShareableList is a list of fixed length in shared memory: nil, bool, int, float64, string and
// []byte, which every process changes in place. It travels to other processes, and [Bind] gives it
// a name.
//
// An element may become one of another type, as long as it fits where the first one was: a string
// or bytes have the room of the first value, rounded up to the next 8 bytes, all others 8 bytes.
// An element is always its old value or its new one, even if a process dies while it sets it.
// Goroutines of one process may use the list at once. Processes that use an element while another
// one sets it must take turns, with a Mutex. The zero ShareableList is closed.
type ShareableList struct {
	mu  sync.Mutex
	mem *Memory
}

// The memory: the number of elements in 8 bytes, for each of them an entry, and the values. An
// entry is the offset and the room of the value, 4 bytes each, and a word. A value has its room
// twice: Set writes the half that is not in use, and then the word, which says length, kind and
// half. So nobody reads a half that a dead process left unfinished.
const (
	listHead  = 8
	listEntry = 16
)

// A listWord says what an element is: length 32 bits, kind 8, half 1.
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

// NewShareableList makes a list. Integers of all types become int, and float32 float64. The caller
// closes it. The error is ErrType for values of other types.
func NewShareableList(values ...any) (*ShareableList, error) {
	size := uint64(listHead + listEntry*len(values))
	packed := make([]packed, len(values))
	for i, v := range values {
		var err error
		if packed[i], err = pack(v); err != nil {
			return nil, fmt.Errorf("new list: element %d: %w", i, err)
		}
		size += 2 * packed[i].room()
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
		binary.LittleEndian.PutUint32(e[4:], uint32(p.room()))
		at += 2 * p.room()
		l.entry(b, i).set(p)
	}
	return l, nil
}

// A packed value is its kind and its bytes.
type packed struct {
	kind  byte
	bytes []byte
}

func (p packed) room() uint64 { return uint64(max(len(p.bytes), 1)+7) &^ 7 }

func pack(v any) (packed, error) {
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
		n, err := integer(v)
		if err != nil {
			return packed{}, err
		}
		bits = uint64(n)
	}
	return packed{kind, binary.LittleEndian.AppendUint64(nil, bits)}, nil
}

func integer(v any) (int64, error) {
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return r.Int(), nil
	case r.CanUint() && r.Uint() > math.MaxInt64:
		return 0, fmt.Errorf("%d: %w", v, ErrSize)
	case r.CanUint():
		return int64(r.Uint()), nil
	}
	return 0, fmt.Errorf("%w: a list holds no %T", ErrType, v)
}

// A place is where an element is: its word, and the two halves of its room.
type place struct {
	word   *atomic.Uint64
	halves [2][]byte
}

// entry returns the place of an element. Any participant may have written the list, so nothing in
// it is believed.
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

func (p place) room() int { return len(p.halves[0]) }

func (p place) set(v packed) { p.word.Store(uint64(p.write(v))) }

// write writes v where nobody reads, and returns the word that makes it the element.
func (p place) write(v packed) listWord {
	half := 1 - listWord(p.word.Load()).half()
	copy(p.halves[half], v.bytes)
	return newListWord(len(v.bytes), v.kind, half)
}

func (p place) get() (any, error) {
	w := listWord(p.word.Load())
	n, kind := w.length(), w.kind()
	if n > uint64(p.room()) || kind >= listKinds || kind >= kindBool && kind <= kindFloat && n != 8 {
		return nil, fmt.Errorf("an element of kind %d, %d of %d bytes: %w", kind, n, p.room(), ErrNotList)
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

// with runs f on the place of element i.
func (l *ShareableList) with(i int, f func(place) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, b := l.open()
	at := fromEnd(i, n)
	switch {
	case b == nil:
		return ErrClosed
	case at < 0 || at >= n:
		return fmt.Errorf("element %d of %d: %w", i, n, ErrIndex)
	}
	return f(l.entry(b, at))
}

// open returns the number of elements and the bytes, nil if l is closed.
func (l *ShareableList) open() (int, []byte) {
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

// Len returns the number of elements, 0 if l is closed.
func (l *ShareableList) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, _ := l.open()
	return n
}

// At returns a copy of element i. Below 0, i counts from the end: -1 is the last one. The error is
// ErrIndex if there is none.
func (l *ShareableList) At(i int) (v any, err error) {
	err = l.with(i, func(p place) error {
		v, err = p.get()
		return err
	})
	return v, err
}

// Set changes element i in place. Below 0, i counts from the end. The error is ErrIndex if there is
// none, ErrType if a list cannot hold v, and ErrSize if there is no room for it; nothing has
// changed then.
func (l *ShareableList) Set(i int, v any) error {
	value, err := pack(v)
	if err != nil {
		return fmt.Errorf("set element %d: %w", i, err)
	}
	return l.with(i, func(p place) error {
		if len(value.bytes) > p.room() {
			return fmt.Errorf("set element %d to %d bytes, with room for %d: %w", i, len(value.bytes),
				p.room(), ErrSize)
		}
		p.set(value)
		return nil
	})
}

// All returns the elements with their indices. An element that cannot be read is skipped; At says
// why.
func (l *ShareableList) All() iter.Seq2[int, any] {
	return func(yield func(int, any) bool) {
		for i := range l.Len() {
			if v, err := l.At(i); err == nil && !yield(i, v) {
				return
			}
		}
	}
}

// Index returns the index of the first element that equals v, or -1.
func (l *ShareableList) Index(v any) int {
	want, err := pack(v)
	for i, got := range l.All() {
		if err == nil && equal(got, want) {
			return i
		}
	}
	return -1
}

// Count returns how many elements equal v.
func (l *ShareableList) Count(v any) (n int) {
	want, err := pack(v)
	for _, got := range l.All() {
		if err == nil && equal(got, want) {
			n++
		}
	}
	return n
}

func equal(got any, want packed) bool {
	p, err := pack(got)
	return err == nil && p.kind == want.kind && string(p.bytes) == string(want.bytes)
}

// Close drops this process's reference. It is idempotent.
func (l *ShareableList) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mem == nil {
		return nil
	}
	return l.mem.Close()
}

// marshalWire lets a list be part of a value that is sent. Its receiver has one of its own, of the
// same elements.
func (l *ShareableList) marshalWire(e *codec.Encoder) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mem == nil {
		return fmt.Errorf("send list: %w", ErrClosed)
	}
	return l.mem.marshalWire(e)
}

// unmarshalWire is the counterpart of marshalWire. The error is ErrNotList if what arrives is none.
func (l *ShareableList) unmarshalWire(d *codec.Decoder) error {
	l.mem = new(Memory)
	if err := l.mem.unmarshalWire(d); err != nil {
		return err
	}
	b := l.mem.Bytes()
	if len(b) < listHead || binary.LittleEndian.Uint64(b) > uint64(len(b)-listHead)/listEntry {
		return fmt.Errorf("receive a list in %d bytes: %w", len(b), ErrNotList)
	}
	return nil
}
