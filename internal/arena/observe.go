package arena

import (
	"context"
	"fmt"
	"iter"
	"math/bits"
	"os"

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
	o, err := observe.RequestObservation(ctx, addr, layout())
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
		Version: protocolVersion, Participants: d.listParticipants()}
	for seat := range v.PIDs {
		v.PIDs[seat] = d.pidOf(seat)
	}
	for k := range kindNames {
		for int(k) >= len(v.Kinds) {
			v.Kinds = append(v.Kinds, "")
		}
		v.Kinds[k] = kindNames[k]
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
			b := &o.d.blocks[i]
			w := b.w.Load()
			if isContents(b, w) {
				o.notes.readTable(b, w)
				continue
			}
			e := b.ext.Load()
			v.Index, v.State, v.Bytes = i, w, int64(b.committed.Load())
			v.Size, v.Kind = extentCapacity(e), uint8(extKind(e))
			v.Holders = v.Holders[:0]
			for s := range seatsIn(&b.own) {
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
	b := &o.d.blocks[v.Index]
	var view any
	ok := false
	switch objectKind(v.Kind) {
	case objectRing:
		view, ok = o.d.viewQueue(v.Index, b, v.State)
	case objectSync:
		view, ok = o.d.viewLock(v.Index, b, v.State)
	case objectTimeline:
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
		all = append(all, observe.Participant{PID: d.pidOf(s), Seat: s, State: text})
	}
	return all
}

// pidOf returns the ID of the process in a seat, or of its last process if the seat is free.
func (d *Domain) pidOf(seat int) int { return int(d.parts[seat].pid.Load()) }

// extentCapacity returns the capacity of the size class in extent e, or -1 if e is corrupt.
func extentCapacity(e uint64) int64 {
	if c := extClass(e); c < classCount {
		return int64(extentSize(c))
	}
	return -1
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
