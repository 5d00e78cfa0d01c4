package arena

import (
	"context"
	"fmt"
	"iter"
	"os"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Observe returns an observation of the domain. The ages of all blocks are unknown in it, because
// it has no earlier observation to compare with.
func (d *Domain) Observe() observe.Observation { return d.newObserver().Observe() }

// newObserver returns an observer of the domain.
func (d *Domain) newObserver() *observe.Observer { return observe.NewObserver(&observed{d: d}) }

// Observe asks the domain at addr for an observation. The domain must belong to this user, or the
// error wraps [ErrUser]. Observe maps no memory and needs no token. It fails when ctx ends, or
// after five seconds without an answer. It returns [ErrCorrupt] if the answer is no observation.
//
// Programs of different versions can observe each other. A program that is too old to be observed
// closes the connection without an answer; Observe then asks it for a [Report]. From a newer
// program Observe reads the fields that it knows. So fields may be added, but must not change their
// meaning.
func Observe(ctx context.Context, addr string) (observe.Observation, error) {
	o, err := observe.RequestObservation(ctx, addr, programLayout())
	if err != nil {
		return observe.Observation{}, fmt.Errorf("observe domain at %s: %w", addr, err)
	}
	return o, nil
}

// An observed is a domain as package observe reads it.
type observed struct {
	d     *Domain
	notes *notes // tables of contents that the last iteration has found
}

// Overview implements [observe.Domain].
func (o *observed) Overview() observe.Overview {
	d := o.d
	v := observe.Overview{Report: Report{PID: os.Getpid(), Seat: d.seat, Stats: d.headerStats()},
		Version: layout.ProtocolVersion, Participants: d.listParticipants()}
	for seat := range v.PIDs {
		v.PIDs[seat] = d.mem.PIDOf(seat)
	}
	for k := range layout.KindNames {
		for int(k) >= len(v.Kinds) {
			v.Kinds = append(v.Kinds, "")
		}
		v.Kinds[k] = layout.KindNames[k]
	}
	return v
}

// Bound implements [observe.Domain].
func (o *observed) Bound() (map[uint32][]string, map[string]observe.Bound) { return o.d.listBound() }

// Blocks implements [observe.Domain]. It leaves out the tables of contents, which Notes returns.
func (o *observed) Blocks() iter.Seq[*observe.Block] {
	return func(yield func(*observe.Block) bool) {
		o.notes = newNotes(o.d)
		var v observe.Block
		for i := uint32(1); uint64(i) < o.d.blockCount(); i++ {
			b := &o.d.mem.Blocks[i]
			w := b.State.Load()
			if isContents(b, w) {
				o.notes.readTable(b, w)
				continue
			}
			e := b.Extent.Load()
			v.Index, v.State, v.Bytes = i, w, int64(b.Committed.Load())
			v.Size, v.Kind = extentCapacity(e), uint8(layout.ExtentKind(e))
			v.Holders = v.Holders[:0]
			for s := range b.Own.Seats() {
				v.Holders = append(v.Holders, s)
			}
			if !yield(&v) {
				return
			}
		}
	}
}

// View implements [observe.Domain].
func (o *observed) View(v *observe.Block) any {
	b := &o.d.mem.Blocks[v.Index]
	var view any
	ok := false
	switch layout.ObjectKind(v.Kind) {
	case layout.ObjectRing:
		view, ok = o.d.viewQueue(v.Index, b, v.State)
	case layout.ObjectSync:
		view, ok = o.d.viewLock(v.Index, b, v.State)
	case layout.ObjectTimeline:
		view, ok = o.d.viewTimeline(v.Index, b, v.State)
	}
	if !ok {
		return nil
	}
	return view
}

// Notes implements [observe.Domain].
func (o *observed) Notes() *observe.Notes { return o.notes.result() }

// listParticipants lists the participants in the order of seats.
func (d *Domain) listParticipants() (all []observe.Participant) {
	for s := range d.mem.Participants {
		state := d.mem.Participants[s].State.Load()
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
		all = append(all, observe.Participant{PID: d.mem.PIDOf(s), Seat: s, State: text})
	}
	return all
}

// extentCapacity returns the capacity of the size class in extent e, or -1 if e is corrupt.
func extentCapacity(e uint64) int64 {
	if c := layout.ExtentClass(e); c < layout.ClassCount {
		return int64(layout.ExtentSize(c))
	}
	return -1
}

// pidsIn returns the IDs of the processes with a bit in the bitmap, in the order of seats.
func (d *Domain) pidsIn(bitmap *layout.Bitmap) []int {
	all := []int{}
	for s := range bitmap.Seats() {
		all = append(all, d.mem.PIDOf(s))
	}
	return all
}
