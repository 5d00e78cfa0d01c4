package arena

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
	laneMask  = 1<<14 - 1
	kindShift = 14
	goneBit   = 1 << 17
	xoMask    = 1<<18 - 1
	waitBit   = 1 << 18
	allocBit  = 1 << 19
	tOne      = 1 << 20
	tMask     = maxTransit * tOne
	genOne    = 1 << 32
)

// Kinds of a stamp.
const (
	kindNone = iota
	kindAlloc
	kindPut
	kindGet
	kindFree
	kindPunch
	kindGrow
)

// A stateWord is the state word of a block.
type stateWord uint64

func makeStamp(lane uint32, kind uint64) stateWord { return stateWord(kind<<kindShift | uint64(lane)) }

// lane returns the lane that is in the middle of the operation kind on the block. It is meaningful
// only if the word is stamped.
func (w stateWord) lane() uint32 { return uint32(w & laneMask) }
func (w stateWord) kind() uint64 { return uint64(w >> kindShift & 7) }

// isStamped reports whether a lane is in the middle of an operation on the block.
func (w stateWord) isStamped() bool { return w&xoMask != 0 }

// transitCount returns the number of messages that hold the block.
func (w stateWord) transitCount() uint64 { return uint64(w & tMask / tOne) }
func (w stateWord) generation() uint32   { return uint32(w >> 32) }

// isAllocated reports whether the block is in use.
func (w stateWord) isAllocated() bool { return w&allocBit != 0 }

// The extent word of a block:
//
//	63  58 57   56    55    48 47   40 39        4 3  0
//	| 0   | lead| small| kind | class | offset/64 | 0  |
const (
	extOffsetShift = 4
	extOffsetMask  = 1<<36 - 1
	extClassShift  = 40
	extKindShift   = 48
	extKindMask    = 0xff << extKindShift
	extSmall       = 1 << 56 // its pages belong to a slab
	extLead        = 1 << 57 // it carries the slab's charge
)

// An objectKind tells the protocol how to interpret a block's bytes.
type objectKind uint8

const (
	objectNone objectKind = iota
	objectRing
	objectSenders
	objectReceivers
	objectSync
	objectTimeline // see Note [Timelines]
	objectContents // see Note [Contents]
)

// finaliserMayWait reports whether the end of such an object may have to wait for other processes.
func (k objectKind) finaliserMayWait() bool { return k >= objectRing && k <= objectReceivers }

// isToken reports whether the object is an end of a ring.
func (k objectKind) isToken() bool { return k == objectSenders || k == objectReceivers }

func makeExt(offset uint64, class int) uint64 {
	return offset/64<<extOffsetShift | uint64(class)<<extClassShift
}

func extOffset(e uint64) uint64   { return e >> extOffsetShift & extOffsetMask * 64 }
func extClass(e uint64) int       { return int(e >> extClassShift & 0xff) }
func extKind(e uint64) objectKind { return objectKind(e >> extKindShift) }
