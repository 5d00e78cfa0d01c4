package manager

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
)

// An Array is a fixed-length array of numbers in the server. On the server's machine the
// elements are in shared memory, so that methods that only read do not call the server. Methods
// that write are calls to the server: no update is lost, and they may be part of a transaction.
//
// A negative index counts from the end, except in [Array.Slice], [Array.SetSlice] and
// [Array.AddSlice]. Methods return [ErrIndex] if an index is out of range. All methods may be
// called from several goroutines. It is made by [NewArray], or received from another process.
type Array[T ipc.Number] struct{ typed[Array[T]] }

// NewArray creates an Array with the values vs. The caller must close it.
func NewArray[T ipc.Number](ctx context.Context, m *Manager, vs ...T) (*Array[T], error) {
	p, err := createTyped[Array[T]](ctx, m, arrayKind, encodeArg(kindOf[T]()), encodeArg(wordsOf(vs)))
	return &Array[T]{p}, err
}

func wordsOf[T ipc.Number](vs []T) []uint64 {
	ws := make([]uint64, len(vs))
	for i, v := range vs {
		ws[i] = encodeWord(v)
	}
	return ws
}

func numbersOf[T ipc.Number](ws []uint64, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	vs := make([]T, len(ws))
	for i, w := range ws {
		vs[i] = decodeWord[T](w)
	}
	return vs, nil
}

// Len returns the number of elements.
func (a *Array[T]) Len(ctx context.Context) (int, error) {
	defer runtime.KeepAlive(a.ref)
	if s := a.sharedWords(ctx); s != nil {
		return s.len(), nil
	}
	return oneResult[int](a.call(ctx, arrayLength))
}

// Get returns element i. It blocks only while a transaction that has changed the array is in
// progress.
func (a *Array[T]) Get(ctx context.Context, i int) (T, error) {
	defer runtime.KeepAlive(a.ref)
	if s := a.sharedWords(ctx); s != nil && i >= -s.len() && i < s.len() {
		if w, ok := s.load((i + s.len()) % s.len()); ok {
			return decodeWord[T](w), nil
		}
	}
	w, err := oneResult[uint64](a.call(ctx, arrayGet, encodeArg(i)))
	return decodeWord[T](w), err
}

// Slice returns a consistent snapshot of the elements from low to high-1. If high is -1, the
// slice extends to the end. It returns [ErrIndex] if low is negative or the bounds are out of
// range.
func (a *Array[T]) Slice(ctx context.Context, low, high int) ([]T, error) {
	defer runtime.KeepAlive(a.ref)
	if s := a.sharedWords(ctx); s != nil && low >= 0 && low <= high && high <= s.len() {
		ws := make([]uint64, high-low)
		if s.loadAll(low, ws) {
			return numbersOf[T](ws, nil)
		}
	}
	return numbersOf[T](oneResult[[]uint64](a.call(ctx, arraySlice, encodeArg(low), encodeArg(high))))
}

// All returns a consistent snapshot of all elements.
func (a *Array[T]) All(ctx context.Context) ([]T, error) {
	n, err := a.Len(ctx)
	if err != nil {
		return nil, err
	}
	return a.Slice(ctx, 0, n)
}

// Set sets element i. A negative i counts from the end. It returns [ErrIndex] if i is out of range.
func (a *Array[T]) Set(ctx context.Context, i int, v T) error {
	return a.call(ctx, arraySet, encodeArg(i), encodeArg(wordsOf([]T{v}))).noResult()
}

// SetSlice sets the elements starting at index low to vs, atomically. It returns [ErrIndex], and
// changes nothing, if low is negative or there are fewer than len(vs) elements from low on.
func (a *Array[T]) SetSlice(ctx context.Context, low int, vs []T) error {
	if err := checkLow(low); err != nil {
		return err
	}
	return a.call(ctx, arraySet, encodeArg(low), encodeArg(wordsOf(vs))).noResult()
}

// Add atomically adds delta to element i and returns the sum.
func (a *Array[T]) Add(ctx context.Context, i int, delta T) (T, error) {
	w, err := oneResult[uint64](a.call(ctx, arrayAdd, encodeArg(i), encodeArg(encodeWord(delta))))
	return decodeWord[T](w), err
}

// AddSlice adds deltas to the elements starting at index low, atomically. It returns [ErrIndex],
// and changes nothing, if low is negative or there are fewer than len(deltas) elements from low
// on.
func (a *Array[T]) AddSlice(ctx context.Context, low int, deltas []T) error {
	if err := checkLow(low); err != nil {
		return err
	}
	return a.call(ctx, arrayAddAll, encodeArg(low), encodeArg(wordsOf(deltas))).noResult()
}

// checkLow returns [ErrIndex] if low, the begin of a slice, is negative.
func checkLow(low int) error {
	if low < 0 {
		return fmt.Errorf("manager: %w: slice begins at %d, want at least 0", ErrIndex, low)
	}
	return nil
}

// CompareAndSwap atomically sets element i to v if it equals old, and reports whether it did.
func (a *Array[T]) CompareAndSwap(ctx context.Context, i int, old, v T) (bool, error) {
	return oneResult[bool](a.call(ctx, arrayCas, encodeArg(i), encodeArg(encodeWord(old)), encodeArg(encodeWord(v))))
}

// sharedWords returns the array's memory. It returns nil if a call is needed: if the server is on
// another machine, in a transaction, and if the proxy has an error to report.
func (p *proxy) sharedWords(ctx context.Context) words {
	if c, err := p.openClient(); err != nil || c.transaction(ctx) != nil {
		return nil
	}
	return p.ref.words
}

// words is an array in shared memory, guarded by a sequence lock: a version, which is odd during
// an update, the length, and the elements. The elements have the encoding of [encodeWord]. Only
// the server writes it.
type words []atomic.Uint64

const (
	wordVersion = iota
	wordLen
	wordFirst
)

func wordsIn(k keeper, h arena.Handle) words {
	d, ok := k.(*arena.Domain)
	if !ok {
		return nil
	}
	b, err := d.Bytes(h)
	if err != nil || len(b) < 8*wordFirst {
		return nil
	}
	w := words(sys.Words(b))
	if n := w[wordLen].Load(); n > uint64(len(w)-wordFirst) {
		return nil
	}
	return w
}

func (w words) len() int { return min(int(w[wordLen].Load()), len(w)-wordFirst) }

// readTries is the number of attempts to read a consistent state before the reader falls back to a
// call, because the server is in the middle of a longer update.
const readTries = 64

func (w words) load(i int) (v uint64, ok bool) {
	for range readTries {
		at := w[wordVersion].Load()
		v = w[wordFirst+i].Load()
		if at&1 == 0 && w[wordVersion].Load() == at {
			return v, true
		}
	}
	return 0, false
}

func (w words) loadAll(low int, to []uint64) bool {
	for range readTries {
		at := w[wordVersion].Load()
		if at&1 != 0 {
			continue
		}
		for i := range to {
			to[i] = w[wordFirst+low+i].Load()
		}
		if w[wordVersion].Load() == at {
			return true
		}
	}
	return false
}

// An array is the server's state of an Array or a Value. Its methods run with the object's mutex
// held, so one at a time.
type array struct {
	words
	arithmetic
	handle arena.Handle
	held   bool // by a transaction: the version stays odd
}

// Methods of an Array.
var (
	arrayKind = newKind("Array", newArray)

	arrayLength = defineMethod(arrayKind, "len", (*array).length)
	arrayGet    = defineMethod(arrayKind, "get", (*array).get)
	arraySlice  = defineMethod(arrayKind, "slice", (*array).slice)
	arraySet    = defineMethod(arrayKind, "set", (*array).set)
	arrayAdd    = defineMethod(arrayKind, "add", (*array).add)
	arrayAddAll = defineMethod(arrayKind, "addall", (*array).addAll)
	arrayCas    = defineMethod(arrayKind, "cas", (*array).cas)
	arraySwap   = defineMethod(arrayKind, "swap", (*array).swap)
)

func newArray(c *call) (any, error) {
	a := new(array)
	var err error
	if a.arithmetic, err = c.arithmeticArg(0); err != nil {
		return nil, err
	}
	vs, err := decodeArg[[]uint64](c, 1)
	if err != nil {
		return nil, err
	}
	if a.handle, err = c.s.d.Alloc(8 * (wordFirst + len(vs))); err != nil {
		return nil, err
	}
	b, err := c.s.d.Bytes(a.handle)
	if err != nil {
		return nil, err
	}
	clear(b)
	a.words = words(sys.Words(b))
	for i, v := range vs {
		a.words[wordFirst+i].Store(v)
	}
	a.words[wordLen].Store(uint64(len(vs)))
	return a, nil
}

func (a *array) sharedBlock() arena.Handle { return a.handle }

// withOddVersion runs f, which updates the elements, while the version is odd, so that clients
// do not use a partial update. It must be called by a method of the object, with the object's
// mutex held.
func (a *array) withOddVersion(f func()) {
	if !a.held {
		a.words[wordVersion].Add(1)
		defer a.words[wordVersion].Add(1)
	}
	f()
}

// decodeSpan decodes two arguments, an index and a list of words. elems are the array's elements
// from that index to its end, and vs the words. It returns [ErrIndex] unless the words fit into
// the array from that index on.
func (a *array) decodeSpan(c *call) (elems []atomic.Uint64, vs []uint64, err error) {
	low, err := insertIndexArg(c, a.len())
	if err != nil {
		return nil, nil, err
	}
	if vs, err = decodeArg[[]uint64](c, 1); err != nil {
		return nil, nil, err
	}
	if len(vs) > a.len()-low {
		return nil, nil, fmt.Errorf("%w: elements %d to %d, length %d", ErrIndex, low, low+len(vs), a.len())
	}
	return a.words[wordFirst+low:], vs, nil
}

func (a *array) decodeElem(c *call) (*atomic.Uint64, error) {
	i, err := indexArg(c, a.len())
	if err != nil {
		return nil, err
	}
	return &a.words[wordFirst+i], nil
}

func (a *array) length(c *call) error { return addResult(c, a.len()) }

func (a *array) get(c *call) error {
	e, err := a.decodeElem(c)
	if err != nil {
		return err
	}
	return addResult(c, e.Load())
}

func (a *array) slice(c *call) error {
	low, high, err := boundsArgs(c, a.len())
	if err != nil {
		return err
	}
	vs := make([]uint64, high-low)
	for i := range vs {
		vs[i] = a.words[wordFirst+low+i].Load()
	}
	return addResult(c, vs)
}

func (a *array) set(c *call) error {
	elems, vs, err := a.decodeSpan(c)
	if err != nil {
		return err
	}
	a.withOddVersion(func() {
		for i, v := range vs {
			elems[i].Store(v)
		}
	})
	return nil
}

func (a *array) addAll(c *call) error {
	elems, vs, err := a.decodeSpan(c)
	if err != nil {
		return err
	}
	a.withOddVersion(func() {
		for i, v := range vs {
			elems[i].Store(a.arithmetic.words(elems[i].Load(), v))
		}
	})
	return nil
}

// updateElem decodes two arguments, an index and the operand by. It sets the element at that
// index to next and adds result to the results of the call, where f computes both from the
// element's old value and by. It returns [ErrIndex] if the index is out of range.
func (a *array) updateElem(c *call, f func(old, by uint64) (next, result uint64)) error {
	e, err := a.decodeElem(c)
	if err != nil {
		return err
	}
	by, err := decodeArg[uint64](c, 1)
	if err != nil {
		return err
	}
	next, result := f(e.Load(), by)
	a.withOddVersion(func() { e.Store(next) })
	return addResult(c, result)
}

func (a *array) add(c *call) error {
	return a.updateElem(c, func(old, by uint64) (next, result uint64) {
		sum := a.arithmetic.words(old, by)
		return sum, sum
	})
}

func (a *array) swap(c *call) error {
	return a.updateElem(c, func(old, by uint64) (next, result uint64) { return by, old })
}

func (a *array) cas(c *call) error {
	e, err := a.decodeElem(c)
	if err != nil {
		return err
	}
	old, err := decodeArg[uint64](c, 1)
	if err != nil {
		return err
	}
	v, err := decodeArg[uint64](c, 2)
	if err != nil {
		return err
	}
	same := e.Load() == old
	if same {
		a.withOddVersion(func() { e.Store(v) })
	}
	return addResult(c, same)
}

// saveState returns an undo with a copy of the elements. It keeps the version odd until the
// transaction ends, so that readers call the server and block there.
func (a *array) saveState(keeper) undo {
	old := make([]uint64, a.len())
	for i := range old {
		old[i] = a.words[wordFirst+i].Load()
	}
	a.words[wordVersion].Add(1)
	a.held = true
	end := func() {
		a.held = false
		a.words[wordVersion].Add(1)
	}
	return undo{discard: end, restore: func() {
		for i, v := range old {
			a.words[wordFirst+i].Store(v)
		}
		end()
	}}
}
