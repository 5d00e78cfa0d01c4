package model

import (
	"fmt"
	"math/bits"
)

// The free map model: the same hints as a bitmap of two levels. A set bit says that a block may be free, a bit of the summary that a word of the map may have bits.
// Setting and clearing a bit twice does no harm, so there are no tags, no epochs and no links, and a sweep only sets bits.

const (
	mapBlocks = 3 // blocks 0 and 1 are in word 0, block 2 in word 1
	mapWords  = 2
)

type mapPC uint8

const (
	mBegin mapPC = iota
	mSummary
	mWord
	mDry
	mDryAgain
	mTake
	mFree
	mBit
	mSum
	mSweep
	mEnd
)

type mapThread struct {
	life  life
	pc    mapPC
	left  uint8
	b, k  uint8
	holds bool
}

type mapState struct {
	owner   [mapBlocks]uint8
	words   [mapWords]uint8
	summary uint8
	lost    bool
	p       [listWorkers + 1]mapThread
	kills   uint8
}

// FreeMap is a configuration of the free map model.
type FreeMap struct {
	Rounds int
	Kills  int
	Bug    string
}

// The mutations of the free map model.
const (
	NoDryLook   = "who clears a bit of the summary does not look at the word again"
	SummarySet  = "who frees sets the summary before the bit"
	BitEarly    = "who frees sets the bit before the block is free"
	MapNoLost   = "the reaper does not declare the hints lost"
	SweepNoSum  = "a sweep sets no bit of the summary"
	TrustTheMap = "who clears a bit takes the block without asking its state word"
)

// Model returns the transition system of c: all blocks are free and in the map.
func (c FreeMap) Model() Model[mapState] {
	s := mapState{words: [mapWords]uint8{3, 1}, summary: 3}
	for i := range listWorkers {
		s.p[i].left = uint8(c.Rounds)
	}
	return Model[mapState]{Init: s, Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func (c FreeMap) steps(s mapState, emit func(mapState)) {
	busy := false
	for i := range listWorkers {
		n := s
		switch p := &s.p[i]; {
		case p.life == killed:
			c.reap(&n, i)
		case p.life == alive && p.pc != mEnd:
			c.step(&n, i)
		default:
			continue
		}
		busy = true
		emit(n)
	}
	p := &s.p[listWorkers]
	if p.pc != mBegin && p.pc != mEnd || !busy && s.lost {
		c.step(&s, listWorkers)
		emit(s)
	}
}

func (c FreeMap) events(s mapState, emit func(mapState)) {
	for i := range listWorkers {
		if n := s; s.p[i].life == alive && s.p[i].pc != mEnd && int(s.kills) < c.Kills {
			n.p[i] = mapThread{life: killed}
			n.kills++
			emit(n)
		}
	}
}

func (c FreeMap) reap(s *mapState, i int) {
	for b := range s.owner {
		if s.owner[b] == lane(i) {
			s.owner[b] = 0
		}
	}
	s.p[i].life = reaped
	s.lost = c.Bug != MapNoLost
}

func (c FreeMap) step(s *mapState, i int) {
	p := &s.p[i]
	w := &s.words[p.b>>1]
	switch p.pc {
	case mBegin:
		c.begin(s, i)
	case mSummary: // the lowest word that may have bits
		p.pc = mWord
		if p.b = uint8(bits.TrailingZeros8(s.summary)) << 1; s.summary == 0 {
			p.b, p.pc = 0, mBegin // dry
		}
	case mWord: // the lowest bit, cleared by a CAS
		if *w == 0 {
			p.pc = mDry
			break
		}
		p.b += uint8(bits.TrailingZeros8(*w))
		*w &= *w - 1
		p.pc = mTake
	case mDry:
		s.summary &^= 1 << (p.b >> 1)
		if p.pc = mDryAgain; c.Bug == NoDryLook {
			p.b, p.pc = 0, mSummary
		}
	case mDryAgain:
		if *w != 0 {
			s.summary |= 1 << (p.b >> 1)
		}
		p.b, p.pc = 0, mSummary
	case mTake:
		if s.owner[p.b] != 0 && c.Bug != TrustTheMap {
			p.b, p.pc = 0, mSummary
			break
		}
		s.owner[p.b] = lane(i)
		p.holds = true
		if p.pc = mFree; c.Bug == BitEarly {
			p.pc = mBit
		}
	case mFree:
		s.owner[p.b] = 0
		p.holds = false
		switch c.Bug {
		case BitEarly:
			p.listed()
		case SummarySet:
			p.pc = mSum
		default:
			p.pc = mBit
		}
	case mBit:
		*w |= 1 << (p.b & 1)
		if p.pc = mSum; c.Bug == SummarySet || c.Bug == SweepNoSum && p.k > 0 {
			p.listed()
		}
	case mSum:
		s.summary |= 1 << (p.b >> 1)
		switch c.Bug {
		case BitEarly:
			if p.pc = mFree; p.k > 0 {
				p.listed()
			}
		case SummarySet:
			p.pc = mBit
		default:
			p.listed()
		}
	case mSweep:
		p.b = p.k - 1
		if p.pc = mBit; s.owner[p.b] != 0 {
			p.listed()
		}
	}
}

func (c FreeMap) begin(s *mapState, i int) {
	p := &s.p[i]
	switch {
	case s.lost:
		s.lost = false
		p.k, p.pc = 1, mSweep
	case p.left == 0:
		*p = mapThread{pc: mEnd}
	default:
		p.left--
		p.pc = mSummary
	}
}

// listed goes on with the sweep or with the next round.
func (p *mapThread) listed() {
	p.b, p.pc = 0, mBegin
	if p.k == 0 {
		return
	}
	p.pc = mSweep
	if p.k++; p.k > mapBlocks {
		p.k, p.pc = 0, mBegin
	}
}

func (c FreeMap) check(s *mapState) error {
	for i := range s.p {
		if p := &s.p[i]; p.holds && s.owner[p.b] != lane(i) {
			return fmt.Errorf("block %d has two owners", p.b)
		}
	}
	return nil
}

func (c FreeMap) done(s *mapState) error {
	for b := range mapBlocks {
		if s.words[b>>1]>>(b&1)&1 == 0 || s.summary>>(b>>1)&1 == 0 {
			return fmt.Errorf("block %d is free and cannot be found", b)
		}
	}
	return nil
}
