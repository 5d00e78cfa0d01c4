package layout

import (
	"hash/fnv"
	"structs"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Limits fixed in the layout.
const (
	LanesPerSeat = 64
	MaxLanes     = word.MaxParticipants * LanesPerSeat
	BitmapWords  = word.MaxParticipants / 64
	PageSize     = 4096
)

// Offsets in the control segment, in bytes, as drawn in docs/memory.md.
const (
	OffParticipants = 64 << 10
	OffLanes        = 128 << 10
	OffBlocks       = 2 << 20
	ControlSize     = OffBlocks + word.MaxBlocks*BlockSize
	BlockSize       = 64
	CommitStep      = 256 << 10 // of block headers
	LaneBytes       = LanesPerSeat * 64
)

// Magic is the first word of a control segment: "shoal1".
const Magic = 0x316c616f6873

// ProtocolVersion must be incremented when the meaning of a word changes. It is part of the layout
// hash, by which programs check that they fit. It is also stored separately, at places that must
// not move between versions: at byte 48 of the control segment, and in the requests and answers of
// Note [Sockets].
const ProtocolVersion = 14

// Header is the first page of the control segment.
type Header struct {
	_ structs.HostLayout

	Magic    word.Word // 0    written last by the root
	Layout   word.Word // 8    hash of sizes and offsets
	DataSize word.Word // 16   bytes
	Limit    word.Word // 24   budget in pages
	Token    [2]word.Word
	Version  word.Word // 48   protocol version, for errors of builds that do not fit; 0 before 9
	_        [8]byte

	Blocks     word.Word // 64   headers handed out so far: indices 1 to blocks-1 are in use
	Ready      word.Word // 72   headers committed so far
	Brk        word.Word // 80   bytes of the data segment handed out so far
	Hints      word.Word // 88   epoch of the free lists
	Lost       word.Word // 96   HintsKept, HintsLost or HintsSweeping
	_          [24]byte
	Budget     word.Of[word.Budget] // 128  pages charged, with the stamp of the changing lane
	_          [56]byte
	Recovery   word.Word // 192  the reaper: epoch 32 | WAIT 1 | seat + 1
	DeathEpoch word.Word // 200  deaths noticed
	Members    word.Word // 208  joins and leaves
	Pressure   word.Word // 216  times a participant ran out of budget
	Reaped     word.Word // 224  participants reaped after a death
	Dropped    word.Word // 232  messages dropped because their reader died
	Lanes      word.Word // 240  number of seats with lanes that were ever committed
	Quota      word.Word // 248  processors that the control groups of the root allow to keep busy
	Spinners   Bitmap    // 256  participants that spin
	XOWait     Bitmap    // 288  participants that wait for a stamp to clear
	MemWait    Bitmap    // 320  participants that wait for memory
	Relief     word.Word // 352  0, or 1 + blocks freed since the first wait for memory
	Names      word.Word // 360  handle of the board of names, possibly stale; 0: none yet

	Restarts word.Word // 368  statistics: processes restarted by groups after a failure
	Retries  word.Word // 376  statistics: tasks rerun by pools after the death of a worker

	Lists [ClassCount]word.Word // 384  heads of the free lists: epoch 12 | tag 20 | index 32

	Processors [ProcessorWords]word.Word // the set of the processors of all participants, by number; a hint
}

// The recovery word: epoch 32 | WAIT 1 | 0 15 | seat + 1 16. WAIT means that a leaving participant
// waits for the lock.
const (
	RecoverySeat = 1<<16 - 1
	RecoveryWait = 1 << 31
)

// States of the header's lost word.
const (
	HintsKept     = 0
	HintsLost     = 1 // free blocks may be on no list
	HintsSweeping = 2 // a lane is putting them on their lists
)

// ProcessorWords is the number of words of the header's set of processors. Linux numbers at most
// 1024 processors by default; higher numbers are folded.
const ProcessorWords = 16

// Participant is one seat of the participant table.
type Participant struct {
	_ structs.HostLayout

	State word.Of[word.Participant] // epoch 32 | participantState
	PID   word.Word
	Start word.Word // process start time in clock ticks since boot

	Collected word.Word // the newest pressure that it has collected for
	Nap       word.Word // state of its waiting goroutine: awake, napping, roused by a topic
	Bell      word.Word // name of its doorbell
	Missed    word.Word // 1: a topic did not fit into the queue of its doorbell
	_         [200]byte
}

// LaneRecord holds the data that a reaper needs about a lane. Only the lane itself may write it, or
// a reaper on behalf of a dead one.
//
// Invariant (docs/memory.md, "Control segment"): Opseq only increases, and a record must not be
// reset when the seat gets another participant. So a slot with a lane and an opseq identifies one
// put in the domain's whole life.
type LaneRecord struct {
	_ structs.HostLayout

	Opseq  word.Word // number of the lane's newest put; must never be reset
	Block  word.Word // index of the block with pages being committed or punched
	From   word.Word // committed bytes of the block before
	Target word.Word // committed bytes of the block after
	Phase  word.Word // PhaseIdle, PhaseCharged or PhaseShrink
	Allocs word.Word // statistics: blocks allocated
	Copied word.Word // statistics: bytes copied into or out of blocks by Shoal
	_      [8]byte
}

// Phases of a lane's commit.
const (
	PhaseIdle    = 0
	PhaseCharged = 1 // pages are charged, but not yet committed to the block
	PhaseShrink  = 2 // pages of the block are being given back, still charged
)

// Block is one block header. docs/memory.md specifies the states, the extents and the protocol.
//
// Own, Extent, Committed and Next must change only under a stamp of State, with two exceptions:
// Next may change at any time, as a hint that may be wrong, and a participant may change its own
// bit, which keeps the block from being freed.
type Block struct {
	_ structs.HostLayout

	Own       Bitmap              // one bit per participant
	State     word.Of[word.State] // generation 32 | transit 12 | ALLOC, WAIT, GONE | kind 3 | lane 14
	Extent    word.Word           // extent: location, class and kind of its bytes
	Committed word.Word           // bytes backed by pages and charged
	Next      word.Word           // free-list hint: epoch 31 | listed 1 | next 32
}

// IsOwned reports whether a participant holds the block.
func (b *Block) IsOwned() bool { return !b.Own.IsEmpty() }

// Hash returns a hash of the sizes and offsets of the shared structures.
//
// Two programs with different layouts must not join the same domain: the hash must be compared
// before any other word is trusted.
func Hash() uint64 {
	h := fnv.New64a()
	for _, v := range []uintptr{
		ProtocolVersion,
		unsafe.Sizeof(Header{}), unsafe.Sizeof(Participant{}), unsafe.Sizeof(LaneRecord{}), unsafe.Sizeof(Block{}),
		unsafe.Sizeof(RingHeader{}), unsafe.Sizeof(Slot{}), unsafe.Sizeof(Cell{}), CellHeadSize,
		unsafe.Offsetof(Header{}.Blocks), unsafe.Offsetof(Header{}.Budget), unsafe.Offsetof(Header{}.Recovery),
		unsafe.Offsetof(Header{}.Lists), unsafe.Offsetof(Block{}.State), unsafe.Offsetof(LaneRecord{}.Phase),
		OffParticipants, OffLanes, OffBlocks, word.MaxParticipants, LanesPerSeat, word.MaxBlocks, ClassCount, PageSize,
	} {
		var b [8]byte
		for i := range b {
			b[i] = byte(v >> (8 * i))
		}
		h.Write(b[:])
	}
	return h.Sum64()
}
