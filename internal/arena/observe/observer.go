package observe

import (
	"iter"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/shm"
)

// Note [Observation] An observer asks a process that serves the domain, which reads its own mapping
// and answers in JSON. An observation changes nothing: it sets no bit, takes no lane and no lock,
// and touches no page that is not backed. So the words may change while they are read. Every index,
// extent, length and seat must be compared with its bounds, and garbage must not be logged. A
// block's state word is read before and after the block; if the two do not belong to the same use
// of the block, the block is left out. The parts of an observation are read one after the other, so
// they may disagree.
//
// A bit in a bitmap of waiters stays set until its process is woken. So a list of waiters may
// contain a process that has given up at its deadline. Goroutines that still spin are not listed.
//
// Shared memory does not record when a block was allocated, so observations do not say it. The
// allocating call and the dtype and shape of a tensor are recorded by processes that run with
// SHOAL_DEBUG=lifetime: see Note [Contents].

// A Domain is a domain as its observer reads it. Its methods change nothing; see Note
// [Observation].
type Domain interface {
	// Overview returns everything that does not depend on blocks.
	Overview() Overview
	// Bound returns the names of the bound blocks by block index, and the bound values by name.
	Bound() (names map[uint32][]string, values map[string]Bound)
	// Blocks iterates over the blocks, in the order of their indices. The next iteration changes
	// the Block.
	Blocks() iter.Seq[*Block]
	// View describes the object in a block: it returns a [QueueView], a [LockView] or a
	// [TimelineView]. It returns nil if there is none, or if the block has changed since.
	View(*Block) any
	// Notes returns the records of processes that run with SHOAL_DEBUG=lifetime. It must be called
	// after all blocks have been iterated over.
	Notes() *Notes
}

// An Overview is the part of an observation that does not depend on blocks.
type Overview struct {
	Report       shm.Report // without holders and names, and without the counts of blocks
	Version      int        // of the protocol
	Participants []Participant
	PIDs         [word.MaxParticipants]int // process IDs by seat
	Kinds        []string                  // names by Block.Kind
}

// kindName returns the name of a kind of block, or "unknown".
func (o *Overview) kindName(k uint8) string {
	if int(k) < len(o.Kinds) && o.Kinds[k] != "" {
		return o.Kinds[k]
	}
	return "unknown"
}

// pidsOf returns the IDs of the processes in seats.
func (o *Overview) pidsOf(seats []int) []int {
	all := []int{}
	for _, s := range seats {
		all = append(all, o.PIDs[s])
	}
	return all
}

// A Block describes a block. It is read without a lock.
type Block struct {
	Index   uint32
	State   word.State
	Bytes   int64 // committed
	Size    int64 // of its size class; negative if that is unknown
	Kind    uint8 // see Overview.Kinds
	Holders []int // seats
}

// Handle returns the block's handle.
func (b *Block) Handle() word.Handle { return word.MakeHandle(b.Index, b.State.Generation()) }

// Notes are the records of processes that run with SHOAL_DEBUG=lifetime, about the blocks that they
// hold.
type Notes struct {
	Tellers int    // number of these processes
	Untold  uint64 // blocks that they had no record for
	Of      map[uint32]Note
	Sites   []SiteCount
	Shapes  []ShapeCount
	DTypes  map[string]Count
}

// A Note describes a block: the call that allocated or received it, and the tensor in it.
type Note struct{ Stack, DType, Shape string }

// An Observer makes the observations of one listener. It remembers the blocks that it has seen,
// because shared memory does not record when a block was allocated.
type Observer struct {
	// Clock returns the time. It is time.Now unless a test sets it.
	Clock func() time.Time

	d     Domain
	first time.Time // time of the first observation
	last  time.Time // time of the last observation
	now   uint32    // time of this observation, in hundredths of a second after first
	// fresh means that the last observation was so recent that a block it did not contain is new.
	fresh bool
	seen  []sighting // by block index
}

// A sighting describes the block that the Observer saw last at an index.
type sighting struct {
	gen uint32 // generation of the block plus 1; 0: none
	// since is the time of the first sighting, in hundredths of a second after Observer.first,
	// shifted left by one; bit 0 is set if the block was new then.
	since uint32
}

// lately is the longest interval between two observations after which blocks that only the second
// one contains count as new.
const lately = 5 * time.Second

// NewObserver returns an observer of d.
func NewObserver(d Domain) *Observer { return &Observer{Clock: time.Now, d: d} }

// Observe makes an observation. Calls must not overlap.
func (o *Observer) Observe() Observation {
	names, bound := o.d.Bound()
	over := o.d.Overview()
	out := Observation{Report: over.Report, Version: over.Version, Bound: bound, Participants: over.Participants,
		Queues: []QueueView{}, Locks: []LockView{}, Timelines: []TimelineView{}}
	o.beginObservation()
	s := newSummary(o)
	for b := range o.d.Blocks() {
		tallyBlock(&out.Stats, b)
		s.countBlock(b)
		if !b.State.IsSteady() {
			continue
		}
		switch v := o.d.View(b).(type) {
		case QueueView:
			v.Names = names[b.Index]
			out.Queues = append(out.Queues, v)
		case LockView:
			v.Names = names[b.Index]
			out.Locks = append(out.Locks, v)
		case TimelineView:
			if len(out.Timelines) < maxTimelines {
				out.Timelines = append(out.Timelines, v)
			}
		}
	}
	out.Summary = s.buildSummary(&over, o.d.Notes(), names)
	for _, h := range out.Summary.Holders {
		out.Holders = append(out.Holders, shm.Holder{PID: h.PID, Seat: h.Seat, Bytes: h.Bytes})
	}
	for name := range bound {
		out.Names = append(out.Names, name)
	}
	slices.Sort(out.Names)
	out.Queues, out.QueuesLeft = sortQueues(out.Queues)
	out.Locks, out.LocksLeft = sortLocks(out.Locks)
	return out
}

// tallyBlock adds a block to the counts of blocks.
func tallyBlock(s *shm.Stats, b *Block) {
	if !b.State.IsAllocated() {
		s.Idle++
		s.IdleBytes += b.Bytes
		return
	}
	s.Blocks++
	s.Bytes += b.Bytes
	s.InTransit += int(b.State.TransitCount())
}

// beginObservation records the time of a new observation.
func (o *Observer) beginObservation() {
	t := o.Clock()
	o.fresh = !o.first.IsZero() && t.Sub(o.last) < lately
	if o.first.IsZero() {
		o.first = t
	}
	o.last, o.now = t, uint32(min(t.Sub(o.first)/(10*time.Millisecond), 1<<31-1))
}

// blockAge returns how long the observer has seen block i in its current generation, given its
// state word w. known reports whether this is the block's age, within the interval between two
// observations: it is if the previous observation did not contain the block.
func (o *Observer) blockAge(i uint32, w word.State) (age time.Duration, known bool) {
	if n := int(i) + 1 - len(o.seen); n > 0 {
		o.seen = append(o.seen, make([]sighting, n)...)
	}
	s := &o.seen[i]
	if s.gen != w.Generation()+1 {
		*s = sighting{w.Generation() + 1, o.now << 1}
		if o.fresh {
			s.since |= 1
		}
	}
	return time.Duration(o.now-s.since>>1) * (10 * time.Millisecond), s.since&1 != 0
}
