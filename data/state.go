package data

import (
	"container/heap"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A State is the position of a [Loader] between two batches. It can be encoded with encoding/json.
// It is valid for Loaders with any number and kind of workers and, if batches are delivered in
// order, with any batch size and number of ranks. All ranks must take their States after the same
// number of batches; for a Dataset the States are then equal. For a Stream each State covers only
// the parts of one rank, so [Loader.Resume] needs the States of all ranks.
type State struct {
	Seed    uint64      `json:"seed"`
	Epoch   int         `json:"epoch"`
	Samples int         `json:"samples,omitempty"` // samples of the epoch delivered to all ranks together
	Batches int         `json:"batches,omitempty"` // delivered batches of a BatchSampler
	Ahead   []int       `json:"ahead,omitempty"`   // batches delivered early; 0 follows Samples
	Width   int         `json:"width,omitempty"`   // samples in a batch of all ranks, the unit of Ahead
	Count   int         `json:"count,omitempty"`   // number of parts of a Stream
	Parts   []PartState `json:"parts,omitempty"`   // the parts that have begun
}

// A PartState is the number of samples and batches delivered from a part of a [Stream].
type PartState struct {
	Index   int  `json:"index"`
	Samples int  `json:"samples"`
	Batches int  `json:"batches"`
	End     bool `json:"end,omitempty"`
}

// State returns the position of l after the latest batch delivered to a loop. It should be called
// after the training step on that batch, so that the State and the model agree.
func (l *Loader) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.resume != nil:
		return *l.resume
	case l.prefetcher == nil && l.state.isZero():
		return State{Seed: l.opts.Seed, Epoch: int(l.epochs.Load())}
	}
	s := l.state
	s.Ahead, s.Parts = slices.Clone(s.Ahead), slices.Clone(s.Parts)
	return s
}

func (s State) isZero() bool {
	return s.Epoch == 0 && s.Samples == 0 && s.Batches == 0 && s.Ahead == nil && s.Parts == nil
}

// Resume makes the next call of [Loader.Batches] continue at the position of states. A Dataset
// needs one State; a Stream needs the States of all ranks that have read parts of it. If a State
// does not match the Loader, or if States contradict each other, Resume returns an error that wraps
// [ErrState] and leaves l unchanged.
func (l *Loader) Resume(states ...State) error {
	s, err := mergeStates(states)
	if err == nil {
		err = l.check(s)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resume = &s
	l.epochs.Store(int64(s.Epoch))
	return nil
}

// maxParts is the maximum number of parts of a Stream.
const maxParts = 1 << 18

// check returns an error if a State does not match the Loader.
func (l *Loader) check(s State) error {
	stream := l.isStream()
	switch {
	case s.Seed != l.opts.Seed:
		return fmt.Errorf("got seed %d, want %d", s.Seed, l.opts.Seed)
	case s.Epoch < 0 || s.Samples < 0 || s.Batches < 0:
		return fmt.Errorf("got epoch %d, %d samples, %d batches, want all at least 0", s.Epoch, s.Samples, s.Batches)
	case stream && (s.Samples > 0 || s.Batches > 0 || len(s.Ahead) > 0):
		return fmt.Errorf("got the state of a Dataset, want that of a Stream")
	case !stream && len(s.Parts) > 0:
		return fmt.Errorf("got the state of a Stream, want that of a Dataset")
	case (s.Batches > 0) != (l.opts.Batches != nil) && s.Samples+s.Batches > 0:
		return fmt.Errorf("only one of the Loaders has a BatchSampler")
	case len(s.Ahead) > 0 && s.Width != l.globalBatchSize():
		return fmt.Errorf("batches of %d samples were not delivered in order, and this Loader's batches have %d",
			s.Width, l.globalBatchSize())
	case s.Count < 0 || s.Count > maxParts || len(s.Parts) > s.Count:
		return fmt.Errorf("got %d parts, want %d", len(s.Parts), s.Count)
	}
	for _, n := range s.Ahead {
		if n < 0 {
			return fmt.Errorf("invalid batch %d ahead", n)
		}
	}
	for _, p := range s.Parts {
		if p.Index < 0 || p.Index >= s.Count || p.Samples < 0 || p.Batches < 0 {
			return fmt.Errorf("invalid part %d of %d with %d samples in %d batches",
				p.Index, s.Count, p.Samples, p.Batches)
		}
	}
	return nil
}

// globalBatchSize returns the number of samples in one batch of every rank together.
func (l *Loader) globalBatchSize() int { return max(1, l.opts.BatchSize) * rankCount(l.sampler) }

// mergeStates combines the States of the ranks that read a Stream into one with the parts of all
// ranks. A single State is returned as it is. It returns an error if there is none, or if they
// belong to different positions.
func mergeStates(states []State) (State, error) {
	if len(states) == 0 {
		return State{}, errors.New("got no state")
	}
	all := states[0]
	if len(states) == 1 {
		return all, nil
	}
	parts := make(map[int]PartState)
	for _, s := range states {
		if s.Seed != all.Seed || s.Epoch != all.Epoch || s.Samples != all.Samples ||
			s.Batches != all.Batches || len(s.Ahead) > 0 ||
			s.Count > 0 && all.Count > 0 && s.Count != all.Count {
			return State{}, fmt.Errorf("states %+v and %+v belong to different positions or Loaders", all, s)
		}
		all.Count = max(all.Count, s.Count)
		for _, p := range s.Parts {
			if p.Samples >= parts[p.Index].Samples {
				parts[p.Index] = p
			}
		}
	}
	all.Parts = nil
	for _, k := range slices.Sorted(maps.Keys(parts)) {
		all.Parts = append(all.Parts, parts[k])
	}
	return all, nil
}

// recordState records s as the position of the Loader, and w as the loop that received the
// latest batch.
func (l *Loader) recordState(w *prefetcher, s State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prefetcher, l.state = w, s
}

// A mark tracks the progress of an iteration. Only the consumer's goroutine may use it.
type mark struct {
	start  State // where the iteration began
	width  int   // samples in a batch of all ranks, 0 for a BatchSampler
	total  int   // samples in the order
	prefix int   // number of delivered batches without a gap, from the start
	ahead  map[int]bool
	parts  map[int]PartState
}

// recordDelivery records the delivery of a batch and returns the resulting State.
func (m *mark) recordDelivery(s *batchState) State {
	st := m.start
	st.Ahead, st.Parts, st.Width = nil, nil, 0
	if s.progress != nil {
		m.parts[s.part.Index] = PartState{s.part.Index, s.from + s.read, m.parts[s.part.Index].Batches + 1, s.end}
		for _, k := range slices.Sorted(maps.Keys(m.parts)) {
			st.Parts = append(st.Parts, m.parts[k])
		}
		return st
	}
	for m.ahead[s.number] = true; m.ahead[m.prefix]; m.prefix++ {
		delete(m.ahead, m.prefix)
	}
	if m.width == 0 {
		st.Batches += m.prefix
	} else {
		st.Samples = min(st.Samples+m.prefix*m.width, m.total)
	}
	for _, n := range slices.Sorted(maps.Keys(m.ahead)) {
		st.Ahead = append(st.Ahead, n-m.prefix)
		st.Width = max(1, m.width)
	}
	return st
}

// epochPlan returns the plan of an epoch, starting at the position set by Resume if it is in
// this epoch. That position is used only once. The mark begins at the same position.
func (l *Loader) epochPlan(epoch int) (plan, *mark) {
	start := State{Seed: l.opts.Seed, Epoch: epoch}
	l.mu.Lock()
	if l.resume != nil && l.resume.Epoch == epoch {
		start = *l.resume
		l.resume = nil
	}
	l.mu.Unlock()
	m := &mark{start: start, ahead: make(map[int]bool), parts: make(map[int]PartState)}
	for _, n := range start.Ahead {
		m.ahead[n] = true
	}
	switch {
	case l.opts.Batches != nil:
		all := l.opts.Batches.Batches(epoch)
		return &numbered{order: new(listed), batches: all[min(start.Batches, len(all)):],
			done: maps.Clone(m.ahead)}, m
	case l.sampler != nil:
		m.width, m.total = l.globalBatchSize(), orderLength(l.sampler)
		p := &numbered{order: remainingOrder(l.sampler, epoch, start.Samples), size: max(1, l.opts.BatchSize),
			drop: l.opts.DropLast}
		p.done = maps.Clone(m.ahead)
		return p, m
	}
	return l.streamPlan(m), m
}

// streamPlan returns the plan of a Stream: the parts of this rank, continued at the position
// m.start. It sets m.parts and the number of parts in m.start.
func (l *Loader) streamPlan(m *mark) plan {
	d := &dealt{size: max(1, l.opts.BatchSize), count: l.opts.Parts}
	if m.start.Count > 0 {
		d.count = m.start.Count
	}
	m.start.Count = d.count
	for _, p := range m.start.Parts {
		m.parts[p.Index] = p
	}
	for k := l.opts.Rank; k < d.count; k += l.opts.World {
		p := m.parts[k]
		d.parts = append(d.parts, &progress{index: k, planned: p.Batches, read: p.Samples, end: p.End})
	}
	heap.Init(&d.parts)
	return d
}
