package data

import "container/heap"

// A plan says what an epoch's batches consist of, one after the other.
type plan interface {
	next() (s *batchState, ok bool)
}

// A planOne is one batch.
type planOne struct{ b *batchState }

func (p *planOne) next() (s *batchState, ok bool) {
	s, p.b = p.b, nil
	return s, s != nil
}

// A numbered plan has the samples of a Dataset.
type numbered struct {
	order   order        // samples that are left,
	size    int          // so many to a batch
	drop    bool         // the last one if it is smaller
	batches [][]int      // or all batches that are left
	done    map[int]bool // batches, by number, that were delivered before
	number  int
}

func (p *numbered) next() (s *batchState, ok bool) {
	for {
		if s, ok = p.step(); !ok {
			return nil, false
		}
		s.number = p.number
		if p.number++; !p.done[s.number] {
			return s, true
		}
	}
}

func (p *numbered) step() (*batchState, bool) {
	if len(p.batches) > 0 {
		s := &batchState{indices: p.batches[0]}
		p.batches = p.batches[1:]
		return s, true
	}
	n := min(p.size, p.order.left())
	if n == 0 || p.drop && n < p.size {
		return nil, false
	}
	return &batchState{indices: p.order.take(n)}, true
}

// A dealt plan has the parts of a Stream in turn: the next batch is of that part of which there
// were fewest. There may be many more parts than batches, so they are a heap.
type dealt struct {
	size  int
	count int // of all parts
	parts partHeap
}

// A progress is how far a part of a Stream has been planned, and read.
type progress struct {
	index   int
	planned int // batches
	read    int // samples
	end     bool
	last    *batchState // the last one planned
}

// A partHeap implements heap.Interface, with the part of the fewest batches first.
type partHeap []*progress

func (h partHeap) Len() int { return len(h) }
func (h partHeap) Less(i, j int) bool {
	return h[i].planned < h[j].planned || h[i].planned == h[j].planned && h[i].index < h[j].index
}
func (h partHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *partHeap) Push(x any) { *h = append(*h, x.(*progress)) }

// Pop implements heap.Interface.
func (h *partHeap) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	*h = (*h)[:last]
	return q
}

func (p *dealt) next() (*batchState, bool) {
	for len(p.parts) > 0 && p.parts[0].end {
		heap.Pop(&p.parts)
	}
	if len(p.parts) == 0 {
		return nil, false
	}
	part := p.parts[0]
	part.planned++
	heap.Fix(&p.parts, 0)
	b := &batchState{portion: portion{part: Part{part.index, p.count}, progress: part, before: part.last, size: p.size}}
	part.last = b
	return b, true
}
