package arena

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
	"time"
)

// A Count is of blocks, and of their committed bytes.
type Count struct {
	Blocks int   `json:"blocks"`
	Bytes  int64 `json:"bytes"`
}

func (c *Count) add(n int64) {
	c.Blocks++
	c.Bytes += n
}

// A Summary counts the blocks of a domain in several ways.
type Summary struct {
	Ages    Ages             `json:"by_age"`
	States  States           `json:"by_state"`
	Kinds   map[string]Count `json:"by_kind"` // in use: block, ring, sending end, receiving end, lock, timeline
	Sizes   []SizeCount      `json:"by_size"` // in use, smallest first
	Holders []HolderCount    `json:"by_holder"`
	Largest []BlockView      `json:"largest"` // in use

	// What the processes tell that were started with SHOAL_DEBUG=lifetime, of what they hold.
	Tellers int              `json:"tellers,omitempty"`  // those processes
	Untold  uint64           `json:"untold,omitempty"`   // blocks for which they had no room
	Sites   []SiteCount      `json:"by_site,omitempty"`  // by the calls that allocated or received them
	Shapes  []ShapeCount     `json:"by_shape,omitempty"` // of blocks with a tensor
	DTypes  map[string]Count `json:"by_dtype,omitempty"` // of these
}

// Ages counts the blocks in use by how long the observer has seen them. A block may be older by the
// time from one look to the next.
type Ages struct {
	Second  Count `json:"under_1s"`
	Minute  Count `json:"under_1m"` // and a second or more
	Older   Count `json:"older"`
	Unknown Count `json:"unknown"` // there before the observer, which looks for less than a minute
}

// States counts all blocks by who holds them.
type States struct {
	Held      Count `json:"held"`       // by a process at least
	InTransit Count `json:"in_transit"` // by messages only
	Ending    Count `json:"ending"`     // by nobody: about to be free
	Idle      Count `json:"idle"`       // free, with pages for the next allocation
}

// A SizeCount is of the blocks of one size class.
type SizeCount struct {
	Size int64 `json:"size"` // the most bytes of such a block
	Count
}

// A HolderCount is of the blocks that a process holds.
type HolderCount struct {
	PID  int `json:"pid"`
	Seat int `json:"seat"`
	Count
	Alone Count `json:"alone"` // those that nobody else holds
}

// A SiteCount is of the blocks that were allocated or received by the same calls.
type SiteCount struct {
	Stack string `json:"stack"`
	Count
}

// A ShapeCount is of the blocks with a tensor of the same dtype and shape.
type ShapeCount struct {
	DType string `json:"dtype"`
	Shape string `json:"shape"`
	Count
}

// A BlockView is one block in use.
type BlockView struct {
	Block     string   `json:"block"` // as in errors
	Kind      string   `json:"kind"`
	Bytes     int64    `json:"bytes"`
	Size      int64    `json:"size"`        // the most of its size class
	PIDs      []int    `json:"pids"`        // that hold it
	InTransit int      `json:"in_transit"`  // messages that hold it
	Age       float64  `json:"age_seconds"` // for how long it was seen
	AgeKnown  bool     `json:"age_known"`   // the age is not more than that and the time between two looks
	Names     []string `json:"names,omitempty"`
	DType     string   `json:"dtype,omitempty"` // as Stack, of a block with a tensor
	Shape     string   `json:"shape,omitempty"`
	Stack     string   `json:"stack,omitempty"` // if a process holds it that has SHOAL_DEBUG=lifetime

	index uint32
}

// summing is a Summary that is being made.
type summing struct {
	d       *Domain
	o       *observer
	s       Summary
	notes   *notes
	sizes   [classCount]Count
	holders [maxParticipants]HolderCount
	kinds   [1 << 8]Count // by objectKind
}

func newSummary(d *Domain, o *observer) *summing {
	return &summing{d: d, o: o, notes: newNotes(d), s: Summary{Kinds: map[string]Count{}, Sizes: []SizeCount{},
		Holders: []HolderCount{}, Largest: []BlockView{}}}
}

// add counts the block with index i, whose word was w, with n committed bytes.
func (x *summing) add(i uint32, b *block, w stateWord, n int64) {
	if !w.allocated() {
		if n > 0 {
			x.s.States.Idle.add(n)
		}
		return
	}
	e := b.ext.Load()
	age, known := x.o.age(i, w)
	x.s.Ages.of(age, known).add(n)
	x.kinds[extKind(e)].add(n)
	if c := extClass(e); c < classCount {
		x.sizes[c].add(n)
	}
	held, holder := 0, (*HolderCount)(nil)
	for j := range b.own {
		for v := b.own[j].Load(); v != 0; v &= v - 1 {
			holder = &x.holders[j*64+bits.TrailingZeros64(v)]
			holder.add(n)
			held++
		}
	}
	if held == 1 && w.transit() == 0 {
		holder.Alone.add(n)
	}
	switch {
	case held > 0:
		x.s.States.Held.add(n)
	case w.transit() > 0:
		x.s.States.InTransit.add(n)
	default:
		x.s.States.Ending.add(n)
	}
	if n > 0 && (len(x.s.Largest) < maxLargest || n > x.s.Largest[maxLargest-1].Bytes) {
		x.enlist(BlockView{Block: makeHandle(i, w.generation()).String(), Kind: kindName(extKind(e)), Bytes: n,
			Size: sizeOf(e), InTransit: int(w.transit()), PIDs: x.d.pidsIn(&b.own), Age: age.Seconds(), AgeKnown: known,
			index: i})
	}
}

// enlist puts a block in its place among the largest.
func (x *summing) enlist(v BlockView) {
	all := x.s.Largest
	at, _ := slices.BinarySearchFunc(all, v, func(a, b BlockView) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), -1)
	})
	all = slices.Insert(all, at, v)
	x.s.Largest = all[:min(len(all), maxLargest)]
}

func (a *Ages) of(age time.Duration, known bool) *Count {
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

// done returns the summary.
func (x *summing) done(names map[uint32][]string) Summary {
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
		x.s.Sites = x.notes.bySite()
		x.s.Shapes, x.s.DTypes = x.notes.byShape()
	}
	for i := range x.s.Largest {
		v := &x.s.Largest[i]
		told := x.notes.of[v.index]
		v.Names, v.Stack, v.DType, v.Shape = names[v.index], told.stack, told.is.DType, told.is.Shape
	}
	return x.s
}

// kindName is what a block is to the protocol.
func kindName(k objectKind) string { return cmp.Or(kindNames[k], "unknown") }

// sizeOf returns the bytes of the class in an extent, which may be garbage.
func sizeOf(e uint64) int64 {
	if c := extClass(e); c < classCount {
		return int64(extentSize(c))
	}
	return 0
}

// seatsIn returns the seats whose bits are set.
func seatsIn(bitmap *[ownWords]Word) iter.Seq[int] {
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

// pidsIn returns the processes whose bits are set, in the order of their seats.
func (d *Domain) pidsIn(bitmap *[ownWords]Word) []int {
	all := []int{}
	for s := range seatsIn(bitmap) {
		all = append(all, d.pidOf(s))
	}
	return all
}
