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

// Note [Batches without a holder]
// A batch belongs to the consumer. Writing to memory that was used before is several times as fast
// as writing to fresh memory, so the memory of unreachable batches is reused. A consumer that
// closes a batch returns its memory at once. If a batch is dropped instead, the garbage collector
// finds that no tensor or slice refers to the memory, and a finalizer returns it. Because the
// program allocates little otherwise, the collector would run rarely, so it is called once enough
// memory has been lent.

// lendersLimit is the number of lent bytes after which the collector is called. At most twice as
// many free bytes are kept.
const lendersLimit = 8 << 20

// A lender is a free list of heap memory for batches. See the Note above.
type lender struct {
	mu    sync.Mutex
	free  []lent // most recently returned last
	bytes int    // size of free
	out   int    // bytes lent since the last call of the collector, less the bytes closed
}

// A lent is a block of memory of a lender.
type lent struct {
	array any  // pointer to an array of bytes
	armed bool // the array has its finalizer
}

func (m lent) size() int { return reflect.TypeOf(m.array).Elem().Len() }

// lending is the lender of this process.
var lending lender

// borrowBlock returns a tensor of at least n bytes with undefined contents. Its memory returns to
// the lender when all tensors that view it are closed, or when it is unreachable.
func (l *lender) borrowBlock(n int) *tensor.Tensor {
	l.countLent(n)
	m := l.takeFree(n)
	if m.array == nil {
		m.array = reflect.New(reflect.ArrayOf(lentSize(n), reflect.TypeFor[byte]())).Interface()
	}
	if !m.armed {
		runtime.SetFinalizer(m.array, func(array any) { l.returnBlock(lent{array: array}) })
	}
	v := reflect.ValueOf(m.array).Elem()
	t := tensor.FromSlice(v.Slice(0, v.Len()).Bytes(), v.Len())
	foreignTensors.OnClose(t.Storage(), func() {
		l.countLent(-n)
		l.returnBlock(lent{m.array, true})
	})
	return t
}

// lentSize rounds n bytes up to a multiple of pages and of an eighth of the power of two below
// n. Ragged batches have any size, and reflect keeps every array type forever, so the number of
// sizes must be limited.
func lentSize(n int) int {
	step := max(4096, 1<<bits.Len(uint(n))>>4)
	return max(1, (n+step-1)/step) * step
}

// takeFree removes a block of at least n bytes, and not much more than 2*n, from the free list
// and returns it. The array of the result is nil if none fits.
func (l *lender) takeFree(n int) (m lent) {
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

// countLent counts n lent bytes, or -n closed bytes if n is negative. It calls the collector once
// enough are lent.
func (l *lender) countLent(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out += n; n > 0 && l.out >= max(lendersLimit, 4*n) {
		l.out = 0
		go runtime.GC()
	}
}

// countShared counts the lent bytes of a batch in shared memory that is delivered to a consumer.
func (l *lender) countShared(b Batch) {
	for _, t := range b {
		n := t.Nbytes()
		if t.IsShared() && foreignTensors.OnClose(t.Storage(), func() { l.countLent(-n) }) {
			l.countLent(n)
		}
	}
}

// returnBlock adds a block to the free list, and drops the oldest blocks if the list exceeds its
// limit.
func (l *lender) returnBlock(m lent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, m)
	for l.bytes += m.size(); l.bytes > 2*lendersLimit && len(l.free) > 1; {
		old := l.free[0]
		l.bytes -= old.size()
		l.free = slices.Delete(l.free, 0, 1)
		if old.armed {
			runtime.SetFinalizer(old.array, nil) // otherwise the finalizer would return it
		}
	}
}
