package layout

// The extent word of a block:
//
//	63  58 57   56    55    48 47   40 39        4 3  0
//	| 0   | lead| small| kind | class | offset/64 | 0  |
const (
	ExtentOffsetShift = 4
	ExtentOffsetMask  = 1<<36 - 1
	ExtentClassShift  = 40
	ExtentKindShift   = 48
	ExtentKindMask    = 0xff << ExtentKindShift
	ExtentSmall       = 1 << 56 // its pages belong to a slab
	ExtentLead        = 1 << 57 // it carries the slab's charge
)

// An ObjectKind tells the protocol how to interpret a block's bytes.
type ObjectKind uint8

// The kinds. A timeline and a table of contents are read by observers only.
const (
	ObjectNone ObjectKind = iota
	ObjectRing
	ObjectSenders
	ObjectReceivers
	ObjectSync
	ObjectTimeline
	ObjectContents
)

// KindNames has the names of the kinds that users may see.
var KindNames = map[ObjectKind]string{ObjectNone: "block", ObjectRing: "ring", ObjectSenders: "sending end",
	ObjectReceivers: "receiving end", ObjectSync: "lock", ObjectTimeline: "timeline"}

// FinaliserMayWait reports whether the end of such an object may have to wait for other processes.
func (k ObjectKind) FinaliserMayWait() bool { return k >= ObjectRing && k <= ObjectReceivers }

// IsToken reports whether the object is an end of a ring.
func (k ObjectKind) IsToken() bool { return k == ObjectSenders || k == ObjectReceivers }

// MakeExtent returns an extent of kind [ObjectNone] with a size class. offset is in bytes, and
// must be a multiple of 64.
func MakeExtent(offset uint64, class int) uint64 {
	return offset/64<<ExtentOffsetShift | uint64(class)<<ExtentClassShift
}

// ExtentOffset returns the offset of the bytes in the data segment. In the extent of an end of a
// ring it is 64 times the index of the ring's block.
func ExtentOffset(e uint64) uint64 { return e >> ExtentOffsetShift & ExtentOffsetMask * 64 }

// ExtentClass returns the size class, which may be corrupt.
func ExtentClass(e uint64) int { return int(e >> ExtentClassShift & 0xff) }

// ExtentKind returns the kind of the object in a block with extent e. The kind may be unknown,
// because e may be corrupt.
func ExtentKind(e uint64) ObjectKind { return ObjectKind(e >> ExtentKindShift) }
