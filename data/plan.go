package data

import "container/heap"

// A plan is the sequence of the batches of an epoch. nextBatch removes and returns the next one;
// ok is false at the end. It must not be called concurrently.
type plan interface {
	nextBatch() (s *batchState, ok bool)
}

// A planOne is a plan of one batch.
type planOne struct{ b *batchState }

func (p *planOne) nextBatch() (s *batchState, ok bool) {
	s, p.b = p.b, nil
	return s, s != nil
}

// A numbered is the plan of a Dataset.
type numbered struct {
	order   order        // remaining samples
	size    int          // samples in a batch
	drop    bool         // drop the last batch if it is smaller
	batches [][]int      // remaining batches of a BatchSampler, instead of order
	done    map[int]bool // numbers of batches that were delivered before Resume
	number  int
}

func (p *numbered) nextBatch() (s *batchState, ok bool) {
	for {
		if s, ok = p.planBatch(); !ok {
			return nil, false
		}
		s.number = p.number
		if p.number++; !p.done[s.number] {
			return s, true
		}
	}
}

func (p *numbered) planBatch() (*batchState, bool) {
	if len(p.batches) > 0 {
		s := &batchState{indices: p.batches[0]}
		p.batches = p.batches[1:]
		return s, true
	}
	n := min(p.size, p.order.remaining())
	if n == 0 || p.drop && n < p.size {
		return nil, false
	}
	return &batchState{indices: p.order.takeNext(n)}, true
}

// A dealt is the plan of a Stream. The next batch comes from the part with the fewest planned
// batches. The parts form a heap, because there may be many more parts than batches.
type dealt struct {
	size  int
	count int // number of parts of the Stream, on all ranks
	parts partHeap
}

// A progress records how far a part of a Stream has been planned and read. It is guarded by
// prefetcher.mu.
type progress struct {
	index   int
	planned int // batches planned
	read    int // samples read
	end     bool
	last    *batchState // latest planned batch
}

// A partHeap implements [heap.Interface]. The part with the fewest planned batches comes first.
type partHeap []*progress

func (h partHeap) Len() int { return len(h) }
func (h partHeap) Less(i, j int) bool {
	return h[i].planned < h[j].planned || h[i].planned == h[j].planned && h[i].index < h[j].index
}
func (h partHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *partHeap) Push(x any) { *h = append(*h, x.(*progress)) }

// Pop implements [heap.Interface].
func (h *partHeap) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	*h = (*h)[:last]
	return q
}

func (p *dealt) nextBatch() (*batchState, bool) {
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
