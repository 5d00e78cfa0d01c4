package data

import (
	"math/bits"
	"reflect"
	"runtime"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/tensor"
)

var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// Note [Batches that nobody has]
// A batch is the consumer's, for as long as it has it. Memory that was written before is several
// times as fast as fresh memory, so what nobody has any more is used again. A consumer that closes
// a batch says so. One that drops it does not; but the garbage collector finds that neither a
// tensor nor a slice refers to the memory, and hands it to a finalizer, which keeps it. Since
// little is allocated then, the collector is called when so much has been dropped that it is worth
// its while.

// lendersLimit is how much is lent before the collector is called, and how much is kept.
const lendersLimit = 8 << 20

// A lender has memory on the heap for batches.
type lender struct {
	mu    sync.Mutex
	free  []lent // the last one warmest
	bytes int    // of these
	out   int    // bytes that were lent since the collector was called, and not closed
}

// lent is memory that is lent.
type lent struct {
	array any  // a pointer to an array of bytes
	armed bool // the array has its finalizer
}

func (m lent) size() int { return reflect.TypeOf(m.array).Elem().Len() }

// lending is the process's.
var lending lender

// block returns a tensor of n bytes or more, which hold anything. Its memory comes back when all
// tensors that view it are closed, or when nothing refers to it.
func (l *lender) block(n int) *tensor.Tensor {
	l.lends(n)
	m := l.take(n)
	if m.array == nil {
		m.array = reflect.New(reflect.ArrayOf(lentSize(n), reflect.TypeFor[byte]())).Interface()
	}
	if !m.armed {
		runtime.SetFinalizer(m.array, func(array any) { l.back(lent{array: array}) })
	}
	v := reflect.ValueOf(m.array).Elem()
	t := tensor.FromSlice(v.Slice(0, v.Len()).Bytes(), v.Len())
	foreignTensors.OnClose(t.Storage(), func() {
		l.lends(-n)
		l.back(lent{m.array, true})
	})
	return t
}

// lentSize rounds up to pages, and to an eighth of the power of two below: reflect never forgets a
// type of an array, and ragged batches are of any size.
func lentSize(n int) int {
	step := max(4096, 1<<bits.Len(uint(n))>>4)
	return max(1, (n+step-1)/step) * step
}

// take returns memory that nobody has, none if none fits.
func (l *lender) take(n int) (m lent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, m := range slices.Backward(l.free) {
		if size := m.size(); size >= n && size <= 2*n+1<<12 {
			l.free = slices.Delete(l.free, i, i+1)
			l.bytes -= size
			return m
		}
	}
	return lent{}
}

// lends counts n bytes of any memory that are lent, or closed if n is negative, and calls the
// collector when it is time.
func (l *lender) lends(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out += n; n > 0 && l.out >= max(lendersLimit, 4*n) {
		l.out = 0
		go runtime.GC()
	}
}

// watch counts a batch in shared memory that a consumer gets.
func (l *lender) watch(b Batch) {
	for _, t := range b {
		n := t.Nbytes()
		if t.IsShared() && foreignTensors.OnClose(t.Storage(), func() { l.lends(-n) }) {
			l.lends(n)
		}
	}
}

// back keeps memory that nobody has, the oldest of it given up where it is too much.
func (l *lender) back(m lent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, m)
	for l.bytes += m.size(); l.bytes > 2*lendersLimit && len(l.free) > 1; {
		old := l.free[0]
		l.bytes -= old.size()
		l.free = slices.Delete(l.free, 0, 1)
		if old.armed {
			runtime.SetFinalizer(old.array, nil) // or it would come back
		}
	}
}
