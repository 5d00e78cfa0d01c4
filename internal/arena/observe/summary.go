package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Count is a number of blocks and the sum of their committed bytes.
type Count struct {
	Blocks int   `json:"blocks"`
	Bytes  int64 `json:"bytes"`
}

// Add adds a block with n committed bytes.
func (c *Count) Add(n int64) {
	c.Blocks++
	c.Bytes += n
}

// A Summary counts the blocks of a domain by several criteria.
type Summary struct {
	Ages   Ages   `json:"by_age"`
	States States `json:"by_state"`
	// Kinds counts the blocks in use by kind: block, ring, sending end, receiving end, lock,
	// timeline.
	Kinds   map[string]Count `json:"by_kind"`
	Sizes   []SizeCount      `json:"by_size"` // of blocks in use, smallest first
	Holders []HolderCount    `json:"by_holder"`
	Largest []BlockView      `json:"largest"` // of blocks in use

	// The records of processes that run with SHOAL_DEBUG=lifetime, about the blocks that they hold.
	Tellers int    `json:"tellers,omitempty"` // number of these processes
	Untold  uint64 `json:"untold,omitempty"`  // blocks that they had no record for
	// Sites counts them by the calls that allocated or received them.
	Sites  []SiteCount  `json:"by_site,omitempty"`
	Shapes []ShapeCount `json:"by_shape,omitempty"` // of blocks that contain a tensor
	// DTypes counts the same blocks by dtype.
	DTypes map[string]Count `json:"by_dtype,omitempty"`
}

// Ages counts the blocks in use by how long the observer has seen them. A block may be older by the
// interval between two observations.
type Ages struct {
	Second  Count `json:"under_1s"`
	Minute  Count `json:"under_1m"` // between a second and a minute
	Older   Count `json:"older"`
	Unknown Count `json:"unknown"` // age unknown, and seen for less than a minute
}

// States counts all blocks by their holders.
type States struct {
	Held      Count `json:"held"`       // by one process at least
	InTransit Count `json:"in_transit"` // by messages only
	Ending    Count `json:"ending"`     // no holder: about to be freed
	Idle      Count `json:"idle"`       // free, with pages for the next allocation
}

// A SizeCount counts the blocks of one size class.
type SizeCount struct {
	Size int64 `json:"size"` // capacity of a block of the class
	Count
}

// A HolderCount counts the blocks that one process holds.
type HolderCount struct {
	PID  int `json:"pid"`
	Seat int `json:"seat"`
	Count
	Alone Count `json:"alone"` // blocks without another holder
}

// A SiteCount counts the blocks that were allocated or received by the same calls.
type SiteCount struct {
	Stack string `json:"stack"`
	Count
}

// A ShapeCount counts the tensors of one dtype and shape.
type ShapeCount struct {
	// DType and Shape describe a tensor in the block. They are set only if a holder runs with
	// SHOAL_DEBUG=lifetime, and so is Stack.
	DType string `json:"dtype"`
	Shape string `json:"shape"`
	Count
}

// A BlockView describes one block in use.
type BlockView struct {
	Block     string  `json:"block"` // the handle, formatted as in errors
	Kind      string  `json:"kind"`
	Bytes     int64   `json:"bytes"`
	Size      int64   `json:"size"`        // capacity of its size class
	PIDs      []int   `json:"pids"`        // processes that hold it
	InTransit int     `json:"in_transit"`  // messages that hold it
	Age       float64 `json:"age_seconds"` // since it was first seen
	// AgeKnown means that Age is the block's age, within the interval between two observations.
	AgeKnown bool     `json:"age_known"`
	Names    []string `json:"names,omitempty"`
	// DType and Shape describe a tensor in the block. They are set only if a holder runs with
	// SHOAL_DEBUG=lifetime, and so is Stack.
	DType string `json:"dtype,omitempty"`
	Shape string `json:"shape,omitempty"`
	Stack string `json:"stack,omitempty"` // the call that allocated or received it

	index uint32
	kind  uint8
	seats []int
}

// A summing builds a [Summary].
type summing struct {
	o       *Observer
	s       Summary
	sizes   map[int64]*SizeCount
	holders [word.MaxParticipants]HolderCount
	kinds   [1 << 8]Count // by Block.Kind
}

func newSummary(o *Observer) *summing {
	return &summing{o: o, s: Summary{Kinds: map[string]Count{}, Sizes: []SizeCount{}, Holders: []HolderCount{},
		Largest: []BlockView{}}, sizes: map[int64]*SizeCount{}}
}

// countBlock counts a block.
func (x *summing) countBlock(b *Block) {
	if !b.State.IsAllocated() {
		if b.Bytes > 0 {
			x.s.States.Idle.Add(b.Bytes)
		}
		return
	}
	age, known := x.o.blockAge(b.Index, b.State)
	x.s.Ages.counterFor(age, known).Add(b.Bytes)
	x.kinds[b.Kind].Add(b.Bytes)
	if b.Size >= 0 {
		c := x.sizes[b.Size]
		if c == nil {
			c = &SizeCount{Size: b.Size}
			x.sizes[b.Size] = c
		}
		c.Add(b.Bytes)
	}
	for _, seat := range b.Holders {
		x.holders[seat].Add(b.Bytes)
	}
	if len(b.Holders) == 1 && b.State.TransitCount() == 0 {
		x.holders[b.Holders[0]].Alone.Add(b.Bytes)
	}
	switch {
	case len(b.Holders) > 0:
		x.s.States.Held.Add(b.Bytes)
	case b.State.TransitCount() > 0:
		x.s.States.InTransit.Add(b.Bytes)
	default:
		x.s.States.Ending.Add(b.Bytes)
	}
	if b.Bytes > 0 && (len(x.s.Largest) < maxLargest || b.Bytes > x.s.Largest[maxLargest-1].Bytes) {
		x.insertLargest(BlockView{Block: b.Handle().String(), Bytes: b.Bytes, Size: max(b.Size, 0),
			InTransit: int(b.State.TransitCount()), seats: slices.Clone(b.Holders), kind: b.Kind,
			Age: age.Seconds(), AgeKnown: known, index: b.Index})
	}
}

// insertLargest inserts v into the sorted list of the largest blocks. It drops the smallest one if
// the list is full.
func (x *summing) insertLargest(v BlockView) {
	all := x.s.Largest
	at, _ := slices.BinarySearchFunc(all, v, func(a, b BlockView) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), -1)
	})
	all = slices.Insert(all, at, v)
	x.s.Largest = all[:min(len(all), maxLargest)]
}

// counterFor returns the counter for blocks of an age. If known is false, age is the minimum age.
func (a *Ages) counterFor(age time.Duration, known bool) *Count {
	switch {
	case age >= time.Minute:
		return &a.Older
	case !known:
		return &a.Unknown
	case age >= time.Second:
		return &a.Minute
	}
	return &a.Second
}

// buildSummary returns the finished summary. It reads the process IDs and the names of kinds from
// domain, the records from notes, and the names of the blocks by index from names.
func (x *summing) buildSummary(domain *Overview, notes *Notes, names map[uint32][]string) Summary {
	for k, c := range x.kinds {
		if c.Blocks > 0 {
			kind := domain.kindName(uint8(k))
			x.s.Kinds[kind] = Count{x.s.Kinds[kind].Blocks + c.Blocks, x.s.Kinds[kind].Bytes + c.Bytes}
		}
	}
	for _, c := range x.sizes {
		x.s.Sizes = append(x.s.Sizes, *c)
	}
	slices.SortFunc(x.s.Sizes, func(a, b SizeCount) int { return cmp.Compare(a.Size, b.Size) })
	for seat, h := range x.holders {
		if h.Blocks > 0 {
			h.PID, h.Seat = domain.PIDs[seat], seat
			x.s.Holders = append(x.s.Holders, h)
		}
	}
	slices.SortStableFunc(x.s.Holders, func(a, b HolderCount) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if x.s.Tellers = notes.Tellers; x.s.Tellers > 0 {
		x.s.Untold = notes.Untold
		x.s.Sites, x.s.Shapes, x.s.DTypes = notes.Sites, notes.Shapes, notes.DTypes
	}
	for i := range x.s.Largest {
		v := &x.s.Largest[i]
		v.Kind, v.PIDs, v.Names = domain.kindName(v.kind), domain.pidsOf(v.seats), names[v.index]
		if n, ok := notes.Of[v.index]; ok {
			v.Stack, v.DType, v.Shape = n.Stack, n.DType, n.Shape
		}
	}
	return x.s
}
