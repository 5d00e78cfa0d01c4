package arena

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Observation] An observer asks the process that serves the domain, which reads its own
// mapping and answers in JSON. It only reads: it sets no bit, takes no lane and no lock, and
// touches no page that is not there. So what it reads may change meanwhile. Every index, extent,
// length and seat is compared with its bounds, without a word in the log. A block's state word is
// read before and after; where the two are of different blocks, what lies between them is not told.
// The parts of an observation are of moments that lie close together, so they may disagree.
//
// A bit in a bitmap of waiters stands until somebody wakes its process. So a list of waiters may
// have a process whose wait has ended by its deadline. Goroutines that still spin are not on it.
//
// What shared memory does not have is not in an observation: when a block was made. Where it was
// made, and the dtype and the shape of its tensor, are told by the processes that hold it, if they
// have SHOAL_DEBUG=lifetime: see Note [Contents].

// An Observation is a Report with what the processes of the domain share and wait for.
type Observation struct {
	Report
	// Version is that of the answering program's protocol. It is 0 for a program that is too old to
	// be observed: then there is nothing but the Report.
	Version int `json:"version"`

	Participants []Participant    `json:"participants"` // in the order of their seats
	Summary      Summary          `json:"summary"`
	Queues       []QueueView      `json:"queues"` // those with waiters first, then by depth
	QueuesLeft   int              `json:"queues_left"`
	Locks        []LockView       `json:"locks"` // those with waiters first, then those that are held
	LocksLeft    int              `json:"locks_left"`
	Timelines    []TimelineView   `json:"timelines"` // of loaders
	Bound        map[string]Bound `json:"bound"`     // by name
}

// A Participant is a process in the domain.
type Participant struct {
	PID   int    `json:"pid"`
	Seat  int    `json:"seat"`
	State string `json:"state"` // live, joining, or dead: being reaped
}

// A Bound is the value that has a name.
type Bound struct {
	Blocks []string `json:"blocks"` // in the order of the value
}

// Limits of an observation, so that its size does not grow with the domain.
const (
	maxObserved    = 128 // queues, and locks
	maxLargest     = 32  // blocks
	maxSites       = 32
	maxObservation = 8 << 20 // bytes of JSON
)

// Observe makes an observation. It has seen no block before, so it knows no ages.
func (d *Domain) Observe() Observation { return (&observer{d: d}).look() }

// errSilent: the peer has closed without an answer.
var errSilent = errors.New("no answer")

// Observe asks the domain at addr, of this user, for an observation. It maps nothing and needs no
// token. It ends with ctx, or when there is no answer for five seconds.
//
// No version refuses another one. A program that is too old to be observed closes without an
// answer, and is inspected then. Of a newer program the observer reads the fields that it knows:
// fields are added, and none changes its meaning.
func Observe(ctx context.Context, addr string) (Observation, error) {
	var o Observation
	err := ask(ctx, addr, wantObserve, maxObservation, &o, &o.Report)
	if errors.Is(err, errSilent) {
		o = Observation{}
		err = ask(ctx, addr, wantInspect, maxReport, &o.Report, &o.Report)
	}
	if err != nil {
		return Observation{}, fmt.Errorf("observe domain at %s: %w", addr, err)
	}
	return o, nil
}

// ask reads an answer in JSON, with a report in it. Each report has the number of the process that
// made it, so JSON without a number is from no domain.
func ask(ctx context.Context, addr string, want byte, most int64, answer any, report *Report) error {
	var b []byte
	err := call(ctx, addr, requestOf(want, Token{}), func(c *sys.Conn) (err error) {
		b, err = io.ReadAll(io.LimitReader(c, most))
		switch {
		case len(b) == answerSize && b[0] == statusUser:
			return ErrUser // whatever err: the peer has closed without reading what we asked
		case len(b) == 0 && err == nil:
			return errSilent
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if report.PID < 1 {
		return fmt.Errorf("%w: an answer that names no process", ErrCorrupt)
	}
	return nil
}

// An observer makes the observations of one listener. It remembers which blocks it has seen, since
// a block does not say when it was made.
type observer struct {
	d     *Domain
	first time.Time // when it looked first
	last  time.Time // and when it looked last
	now   uint32    // this look, in hundredths of a second after first
	fresh bool      // the look before was so lately that a block that was not there then is new
	seen  []sighting
}

// A sighting is of the block that the observer saw last under an index.
type sighting struct {
	gen   uint32 // the block's generation and one more; 0: none
	since uint32 // when it was seen first, in hundredths of a second, and in the lowest bit: it was new
}

// lately is how far two looks may lie apart if what only the second one sees is to count as new.
const lately = 5 * time.Second

// look makes an observation.
func (o *observer) look() Observation {
	d := o.d
	names, bound := d.boundNow()
	out := Observation{
		Report: Report{PID: os.Getpid(), Seat: d.seat, Stats: d.figures()}, Version: protocolVersion, Bound: bound,
		Participants: d.participantsNow(), Queues: []QueueView{}, Locks: []LockView{},
		Timelines: []TimelineView{},
	}
	o.begin()
	s := newSummary(d, o)
	for i := uint32(1); uint64(i) < d.count(); i++ {
		b := &d.blocks[i]
		w, n := b.w.Load(), int64(b.committed.Load())
		if isContents(b, w) {
			s.notes.read(b, w)
			continue
		}
		tally(&out.Stats, w, n)
		s.add(i, b, w, n)
		switch kind := extKind(b.ext.Load()); {
		case !w.steady():
		case kind == objectRing:
			if q, ok := d.queueNow(i, b, w); ok {
				q.Names = names[i]
				out.Queues = append(out.Queues, q)
			}
		case kind == objectSync:
			if l, ok := d.lockNow(i, b, w); ok {
				l.Names = names[i]
				out.Locks = append(out.Locks, l)
			}
		case kind == objectTimeline && len(out.Timelines) < maxTimelines:
			if v, ok := d.timelineNow(i, b, w); ok {
				out.Timelines = append(out.Timelines, v)
			}
		}
	}
	out.Summary = s.done(names)
	for _, h := range out.Summary.Holders {
		out.Holders = append(out.Holders, Holder{PID: h.PID, Seat: h.Seat, Bytes: h.Bytes})
	}
	for name := range bound {
		out.Names = append(out.Names, name)
	}
	slices.Sort(out.Names)
	out.Queues, out.QueuesLeft = firstQueues(out.Queues)
	out.Locks, out.LocksLeft = firstLocks(out.Locks)
	return out
}

func (o *observer) begin() {
	t := time.Now()
	o.fresh = !o.first.IsZero() && t.Sub(o.last) < lately
	if o.first.IsZero() {
		o.first = t
	}
	o.last, o.now = t, uint32(min(t.Sub(o.first)/(10*time.Millisecond), 1<<31-1))
	if n := int(o.d.count()) - len(o.seen); n > 0 {
		o.seen = append(o.seen, make([]sighting, n)...)
	}
}

// age returns for how long the observer has seen the block, and whether that is its age. It is so
// if the block was not there when the observer looked before.
func (o *observer) age(i uint32, w stateWord) (age time.Duration, known bool) {
	if int(i) >= len(o.seen) { // it was made while we look
		return 0, true
	}
	s := &o.seen[i]
	if s.gen != w.generation()+1 {
		*s = sighting{w.generation() + 1, o.now << 1}
		if o.fresh {
			s.since |= 1
		}
	}
	return time.Duration(o.now-s.since>>1) * (10 * time.Millisecond), s.since&1 != 0
}

// steady reports whether the block is in use, and neither being made nor being freed.
func (w stateWord) steady() bool {
	return w.allocated() && w.kind() != kindAlloc && w.kind() != kindFree && w&goneBit == 0
}

// same reports whether w and now are words of the same block in use.
func (w stateWord) same(now stateWord) bool {
	return now.steady() && now.generation() == w.generation()
}

// participantsNow lists the participants.
func (d *Domain) participantsNow() (all []Participant) {
	for s := range d.parts {
		state := d.parts[s].state.Load()
		if state.is(participantFree) {
			continue
		}
		text := "live"
		switch {
		case state.is(participantDead):
			text = "dead"
		case state.is(participantJoining):
			text = "joining"
		}
		all = append(all, Participant{PID: d.pidOf(s), Seat: s, State: text})
	}
	return all
}

// pidOf returns the process in a seat, or the one that was there last.
func (d *Domain) pidOf(seat int) int { return int(d.parts[seat].pid.Load()) }
