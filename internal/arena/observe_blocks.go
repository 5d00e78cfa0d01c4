package arena

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Count is a number of blocks and the sum of their committed bytes.
type Count struct {
	Blocks int   `json:"blocks"`
	Bytes  int64 `json:"bytes"`
}

func (c *Count) addBlock(n int64) {
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
	// DType and Shape are those of a tensor in the block. They are set only if a holder runs with
	// SHOAL_DEBUG=lifetime, and so is Stack.
	DType string `json:"dtype,omitempty"`
	Shape string `json:"shape,omitempty"`
	Stack string `json:"stack,omitempty"` // the call that allocated or received it

	index uint32
}

// A summing builds a [Summary].
type summing struct {
	d       *Domain
	o       *observer
	s       Summary
	notes   *notes
	sizes   [classCount]Count
	holders [word.MaxParticipants]HolderCount
	kinds   [1 << 8]Count // by objectKind
}

func newSummary(d *Domain, o *observer) *summing {
	return &summing{d: d, o: o, notes: newNotes(d), s: Summary{Kinds: map[string]Count{}, Sizes: []SizeCount{},
		Holders: []HolderCount{}, Largest: []BlockView{}}}
}

// countBlock counts block i, which has state word w and n committed bytes.
func (x *summing) countBlock(i uint32, b *block, w word.State, n int64) {
	if !w.IsAllocated() {
		if n > 0 {
			x.s.States.Idle.addBlock(n)
		}
		return
	}
	e := b.ext.Load()
	age, known := x.o.blockAge(i, w)
	x.s.Ages.counterFor(age, known).addBlock(n)
	x.kinds[extKind(e)].addBlock(n)
	if c := extClass(e); c < classCount {
		x.sizes[c].addBlock(n)
	}
	held, holder := 0, (*HolderCount)(nil)
	for j := range b.own {
		for v := b.own[j].Load(); v != 0; v &= v - 1 {
			holder = &x.holders[j*64+bits.TrailingZeros64(v)]
			holder.addBlock(n)
			held++
		}
	}
	if held == 1 && w.TransitCount() == 0 {
		holder.Alone.addBlock(n)
	}
	switch {
	case held > 0:
		x.s.States.Held.addBlock(n)
	case w.TransitCount() > 0:
		x.s.States.InTransit.addBlock(n)
	default:
		x.s.States.Ending.addBlock(n)
	}
	if n > 0 && (len(x.s.Largest) < maxLargest || n > x.s.Largest[maxLargest-1].Bytes) {
		x.insertLargest(BlockView{Block: word.MakeHandle(i, w.Generation()).String(), Kind: kindName(extKind(e)),
			Bytes: n, Size: extentCapacity(e), InTransit: int(w.TransitCount()), PIDs: x.d.pidsIn(&b.own),
			Age: age.Seconds(), AgeKnown: known, index: i})
	}
}

// insertLargest inserts v into the sorted list of the largest blocks.
func (x *summing) insertLargest(v BlockView) {
	all := x.s.Largest
	at, _ := slices.BinarySearchFunc(all, v, func(a, b BlockView) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), -1)
	})
	all = slices.Insert(all, at, v)
	x.s.Largest = all[:min(len(all), maxLargest)]
}

// counterFor returns the counter for blocks of an age. known reports whether the age is known.
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

// buildSummary returns the finished summary. names has the names of the blocks by index.
func (x *summing) buildSummary(names map[uint32][]string) Summary {
	for k, c := range x.kinds {
		if c.Blocks > 0 {
			kind := kindName(objectKind(k))
			x.s.Kinds[kind] = Count{x.s.Kinds[kind].Blocks + c.Blocks, x.s.Kinds[kind].Bytes + c.Bytes}
		}
	}
	for c, n := range x.sizes {
		if n.Blocks > 0 {
			x.s.Sizes = append(x.s.Sizes, SizeCount{int64(extentSize(c)), n})
		}
	}
	for seat, h := range x.holders {
		if h.Blocks > 0 {
			h.PID, h.Seat = x.d.pidOf(seat), seat
			x.s.Holders = append(x.s.Holders, h)
		}
	}
	slices.SortStableFunc(x.s.Holders, func(a, b HolderCount) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if x.s.Tellers = x.notes.tellers; x.s.Tellers > 0 {
		x.s.Untold = x.notes.untold
		x.s.Sites = x.notes.countBySite()
		x.s.Shapes, x.s.DTypes = x.notes.countByShape()
	}
	for i := range x.s.Largest {
		v := &x.s.Largest[i]
		told := x.notes.of[v.index]
		v.Names, v.Stack, v.DType, v.Shape = names[v.index], told.stack, told.is.DType, told.is.Shape
	}
	return x.s
}

// kindName returns the name of a kind of block in an observation.
func kindName(k objectKind) string { return cmp.Or(kindNames[k], "unknown") }

// extentCapacity returns the capacity of the size class in extent e, or 0 if e is corrupt.
func extentCapacity(e uint64) int64 {
	if c := extClass(e); c < classCount {
		return int64(extentSize(c))
	}
	return 0
}

// seatsIn iterates over the seats with a bit in the bitmap.
func seatsIn(bitmap *[ownWords]word.Word) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range bitmap {
			for v := bitmap[i].Load(); v != 0; v &= v - 1 {
				if !yield(i*64 + bits.TrailingZeros64(v)) {
					return
				}
			}
		}
	}
}

// pidsIn returns the IDs of the processes with a bit in the bitmap, in the order of seats.
func (d *Domain) pidsIn(bitmap *[ownWords]word.Word) []int {
	all := []int{}
	for s := range seatsIn(bitmap) {
		all = append(all, d.pidOf(s))
	}
	return all
}
