package arena

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/socket"
	"github.com/shoal-mp/shoal/internal/arena/word"
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

// An Observation is a [Report] with everything that the processes of the domain share and wait for.
type Observation struct {
	Report
	// Version is the protocol version of the answering program. It is 0 if that program is too old
	// to be observed; then only Report is set.
	Version int `json:"version"`

	Participants []Participant    `json:"participants"` // in the order of seats
	Summary      Summary          `json:"summary"`
	Queues       []QueueView      `json:"queues"`      // those with waiters first, then by depth
	QueuesLeft   int              `json:"queues_left"` // number of queues left out
	Locks        []LockView       `json:"locks"`       // those with waiters first, then those held
	LocksLeft    int              `json:"locks_left"`  // number of locks left out
	Timelines    []TimelineView   `json:"timelines"`   // of loaders
	Bound        map[string]Bound `json:"bound"`       // by name
}

// A Participant is a process in the domain.
type Participant struct {
	PID   int    `json:"pid"`
	Seat  int    `json:"seat"`
	State string `json:"state"` // live, joining, or dead: not reaped yet
}

// A Bound is the value bound to a name.
type Bound struct {
	Blocks []string `json:"blocks"` // in the order of the value
}

// Limits of an observation. They bound its size, however large the domain is.
const (
	maxObserved    = 128 // queues, and likewise locks
	maxLargest     = 32  // blocks
	maxSites       = 32
	maxObservation = 8 << 20 // bytes of JSON
)

// Observe returns an observation of the domain. The ages of all blocks are unknown in it, because
// it has no earlier observation to compare with.
func (d *Domain) Observe() Observation { return (&observer{d: d}).observe() }

// Observe asks the domain at addr for an observation. The domain must belong to this user, or the
// error wraps [ErrUser]. Observe maps no memory and needs no token. It fails when ctx ends, or
// after five seconds without an answer. It returns [ErrCorrupt] if the answer is no observation.
//
// Programs of different versions can observe each other. A program that is too old to be observed
// closes the connection without an answer; Observe then asks it for a [Report]. From a newer
// program Observe reads the fields that it knows. So fields may be added, but must not change their
// meaning.
func Observe(ctx context.Context, addr string) (Observation, error) {
	var o Observation
	err := requestReport(ctx, addr, socket.WantObserve, maxObservation, &o, &o.Report)
	if errors.Is(err, socket.ErrSilent) {
		o = Observation{}
		err = requestReport(ctx, addr, socket.WantInspect, maxReport, &o.Report, &o.Report)
	}
	if err != nil {
		return Observation{}, fmt.Errorf("observe domain at %s: %w", addr, err)
	}
	return o, nil
}

// requestReport sends a request and decodes the JSON answer into answer, at most most bytes of it.
// report must point into answer. Every report names the process that made it, so an answer without
// a process ID is rejected with [ErrCorrupt].
func requestReport(ctx context.Context, addr string, want byte, most int64, answer any, report *Report) error {
	b, err := socket.Request(ctx, addr, want, layout(), most)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if report.PID < 1 {
		return fmt.Errorf("%w: reply names no process", ErrCorrupt)
	}
	return nil
}

// An observer makes the observations of one listener. It remembers the blocks that it has seen,
// because shared memory does not record when a block was allocated.
type observer struct {
	d     *Domain
	first time.Time // time of the first observation
	last  time.Time // time of the last observation
	now   uint32    // time of this observation, in hundredths of a second after first
	// fresh means that the last observation was so recent that a block it did not contain is new.
	fresh bool
	seen  []sighting // by block index
}

// A sighting describes the block that the observer saw last at an index.
type sighting struct {
	gen uint32 // generation of the block plus 1; 0: none
	// since is the time of the first sighting, in hundredths of a second after observer.first,
	// shifted left by one; bit 0 is set if the block was new then.
	since uint32
}

// lately is the longest interval between two observations after which blocks that only the second
// one contains count as new.
const lately = 5 * time.Second

// observe makes an observation.
func (o *observer) observe() Observation {
	d := o.d
	names, bound := d.listBound()
	out := Observation{
		Report: Report{PID: os.Getpid(), Seat: d.seat, Stats: d.headerStats()}, Version: protocolVersion, Bound: bound,
		Participants: d.listParticipants(), Queues: []QueueView{}, Locks: []LockView{},
		Timelines: []TimelineView{},
	}
	o.beginObservation()
	s := newSummary(d, o)
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		b := &d.blocks[i]
		w, n := b.w.Load(), int64(b.committed.Load())
		if isContents(b, w) {
			s.notes.readTable(b, w)
			continue
		}
		tallyBlock(&out.Stats, w, n)
		s.countBlock(i, b, w, n)
		switch kind := extKind(b.ext.Load()); {
		case !w.IsSteady():
		case kind == objectRing:
			if q, ok := d.viewQueue(i, b, w); ok {
				q.Names = names[i]
				out.Queues = append(out.Queues, q)
			}
		case kind == objectSync:
			if l, ok := d.viewLock(i, b, w); ok {
				l.Names = names[i]
				out.Locks = append(out.Locks, l)
			}
		case kind == objectTimeline && len(out.Timelines) < maxTimelines:
			if v, ok := d.viewTimeline(i, b, w); ok {
				out.Timelines = append(out.Timelines, v)
			}
		}
	}
	out.Summary = s.buildSummary(names)
	for _, h := range out.Summary.Holders {
		out.Holders = append(out.Holders, Holder{PID: h.PID, Seat: h.Seat, Bytes: h.Bytes})
	}
	for name := range bound {
		out.Names = append(out.Names, name)
	}
	slices.Sort(out.Names)
	out.Queues, out.QueuesLeft = sortQueues(out.Queues)
	out.Locks, out.LocksLeft = sortLocks(out.Locks)
	return out
}

// beginObservation records the time of a new observation and makes room in seen.
func (o *observer) beginObservation() {
	t := time.Now()
	o.fresh = !o.first.IsZero() && t.Sub(o.last) < lately
	if o.first.IsZero() {
		o.first = t
	}
	o.last, o.now = t, uint32(min(t.Sub(o.first)/(10*time.Millisecond), 1<<31-1))
	if n := int(o.d.blockCount()) - len(o.seen); n > 0 {
		o.seen = append(o.seen, make([]sighting, n)...)
	}
}

// blockAge returns how long the observer has seen block i in its current generation, given its
// state word w. known reports whether this is the block's age, within the interval between two
// observations: it is if the previous observation did not contain the block.
func (o *observer) blockAge(i uint32, w word.State) (age time.Duration, known bool) {
	if int(i) >= len(o.seen) { // allocated during this observation
		return 0, true
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

// listParticipants lists the participants in the order of seats.
func (d *Domain) listParticipants() (all []Participant) {
	for s := range d.parts {
		state := d.parts[s].state.Load()
		if state.HasState(word.ParticipantFree) {
			continue
		}
		text := "live"
		switch {
		case state.HasState(word.ParticipantDead):
			text = "dead"
		case state.HasState(word.ParticipantJoining):
			text = "joining"
		}
		all = append(all, Participant{PID: d.pidOf(s), Seat: s, State: text})
	}
	return all
}

// pidOf returns the ID of the process in a seat, or of its last process if the seat is free.
func (d *Domain) pidOf(seat int) int { return int(d.parts[seat].pid.Load()) }
