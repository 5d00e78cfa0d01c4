package data

import (
	"reflect"
	"runtime"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/tensor"
)

// Note [Batches that nobody has]
// A batch is the consumer's, for as long as it has it. Memory that was written before is several times as fast as fresh memory, so what nobody
// has any more is used again; and nobody tells that. The garbage collector knows: it finds that neither a tensor nor a slice refers to the memory, and
// hands it to a finalizer, which keeps it. Since little is allocated then, the collector is called when so much is lent out that it is
// worth its while.

// lendersLimit is how much is lent before the collector is called, and how much is kept.
const lendersLimit = 8 << 20

// A lender has memory on the heap for batches.
type lender struct {
	mu    sync.Mutex
	free  []any // pointers to arrays of bytes, the last one warmest
	bytes int   // of these
	lent  int   // bytes since the collector was called
}

// lending is the process's.
var lending lender

// block returns a tensor of n bytes or more, which hold anything.
func (l *lender) block(n int) *tensor.Tensor {
	p := l.take(n)
	if p == nil {
		const page = 4096
		p = reflect.New(reflect.ArrayOf(max(1, (n+page-1)/page)*page, reflect.TypeFor[byte]())).Interface()
	}
	runtime.SetFinalizer(p, func(p any) { l.back(p) })
	b := bytesOf(p)
	return tensor.FromSlice(b, len(b))
}

func bytesOf(p any) []byte {
	v := reflect.ValueOf(p).Elem()
	return v.Slice(0, v.Len()).Bytes()
}

// take returns memory that nobody has, nil if none fits.
func (l *lender) take(n int) any {
	l.lends(n)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range slices.Backward(l.free) {
		if size := reflect.TypeOf(p).Elem().Len(); size >= n && size <= 2*n+1<<12 {
			l.free = slices.Delete(l.free, i, i+1)
			l.bytes -= size
			return p
		}
	}
	return nil
}

// lends counts n bytes of any memory, and calls the collector when it is time.
func (l *lender) lends(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lent += n; l.lent >= max(lendersLimit, 4*n) {
		l.lent = 0
		go runtime.GC()
	}
}

// back keeps memory that nobody has, the oldest of it given up where it is too much.
func (l *lender) back(p any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := reflect.TypeOf(p).Elem().Len()
	l.free = append(l.free, p)
	for l.bytes += size; l.bytes > 2*lendersLimit && len(l.free) > 1; {
		l.bytes -= reflect.TypeOf(l.free[0]).Elem().Len()
		l.free = slices.Delete(l.free, 0, 1)
	}
}
