package arena

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
