package word

// The state word of a block:
//
//	63          32 31      20  19      18     17   16    14 13     0
//	| generation | transit t | ALLOC | WAIT | GONE | kind  | lane  |
//
// GONE, kind and lane are the stamp, called xo. It names the lane that is in the middle of an
// operation on the block, and the kind of the operation. GONE may be set only with FREE: it means
// that the block has no holder, and that its end may take as long as the end of everything that it
// holds.
const (
	LaneMask  = 1<<14 - 1
	kindShift = 14
	GoneBit   = 1 << 17
	StampMask = 1<<18 - 1
	WaitBit   = 1 << 18
	AllocBit  = 1 << 19
	TOne      = 1 << 20
	TMask     = MaxTransit * TOne
	GenOne    = 1 << 32
)

// Kinds of a stamp.
const (
	KindNone = iota
	KindAlloc
	KindPut
	KindGet
	KindFree
	KindPunch
	KindGrow
)

// A State is the state word of a block.
type State uint64

// MakeStamp returns the stamp of a lane that performs an operation of the given kind.
func MakeStamp(lane uint32, kind uint64) State { return State(kind<<kindShift | uint64(lane)) }

// Lane returns the lane that is in the middle of an operation on the block; see [State.Kind]. It
// is meaningful only if the word is stamped.
func (w State) Lane() uint32 { return uint32(w & LaneMask) }

// Kind returns the kind of the operation of the stamp, or [KindNone].
func (w State) Kind() uint64 { return uint64(w >> kindShift & 7) }

// IsStamped reports whether a lane is in the middle of an operation on the block.
func (w State) IsStamped() bool { return w&StampMask != 0 }

// TransitCount returns the number of messages that hold the block.
func (w State) TransitCount() uint64 { return uint64(w & TMask / TOne) }

// Generation returns the number of times that the block has been freed, modulo 2^32.
func (w State) Generation() uint32 { return uint32(w >> 32) }

// IsAllocated reports whether the block is in use.
func (w State) IsAllocated() bool { return w&AllocBit != 0 }

// FindFault returns a description of the reason why w is no legal state word, whatever other
// words contain. It returns "" if there is none.
func (w State) FindFault() string {
	t, kind := w.TransitCount(), w.Kind()
	switch {
	case kind > KindGrow:
		return "no operation has that stamp"
	case kind == KindNone && w&(StampMask|WaitBit) != 0:
		return "a lane, GONE or WAIT without a stamp"
	case w&GoneBit != 0 && kind != KindFree:
		return "GONE without FREE"
	case !w.IsAllocated() && t != 0:
		return "messages hold a free block"
	case !w.IsAllocated() && kind != KindNone && kind != KindPunch, w.IsAllocated() && kind == KindPunch:
		return "an operation of a block in another state"
	case kind == KindPut && t == 0, (kind == KindAlloc || kind == KindFree) && t != 0:
		return "an operation with another t"
	}
	return ""
}

// StaysAllocated reports whether the block is allocated and remains so for a participant that
// holds it. The word must have no FREE stamp, or GONE beside it: otherwise a lane is still
// testing whether the block is free.
func (w State) StaysAllocated() bool { return w.IsAllocated() && w.Kind() != KindFree }

// IsSteady reports whether the block is in use, and is being neither allocated nor freed.
func (w State) IsSteady() bool {
	return w.IsAllocated() && w.Kind() != KindAlloc && w.Kind() != KindFree && w&GoneBit == 0
}

// IsSameUse reports whether now is a word of the same use of the block as w, and the block is
// steady.
func (w State) IsSameUse(now State) bool {
	return now.IsSteady() && now.Generation() == w.Generation()
}
