package arena

import (
	"hash/fnv"
	"structs"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/socket"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Limits fixed in the layout.
const (
	lanesPerSeat = 64
	maxLanes     = word.MaxParticipants * lanesPerSeat
	ownWords     = word.MaxParticipants / 64
	pageSize     = 4096
)

// Offsets in the control segment, in bytes, as drawn in docs/memory.md.
const (
	offParticipants = 64 << 10
	offLanes        = 128 << 10
	offBlocks       = 2 << 20
	controlSize     = offBlocks + word.MaxBlocks*blockSize
	blockSize       = 64
	commitStep      = 256 << 10 // of block headers
	laneBytes       = lanesPerSeat * 64
)

const magic = 0x316c616f6873 // "shoal1"

// protocolVersion must be incremented when the meaning of a word changes. It is part of the layout
// hash, by which programs check that they fit. It is also stored separately, at places that must
// not move between versions: at byte 48 of the control segment, and in the requests and answers of
// Note [Sockets].
const protocolVersion = 13

// header is the first page of the control segment.
type header struct {
	_ structs.HostLayout

	magic    word.Word // 0    written last by the root
	layout   word.Word // 8    hash of sizes and offsets
	dataSize word.Word // 16   bytes
	limit    word.Word // 24   budget in pages
	token    [2]word.Word
	version  word.Word // 48   protocol version, for errors of builds that do not fit; 0 before 9
	_        [8]byte

	blocks     word.Word // 64   headers handed out so far: indices 1 to blocks-1 are in use
	ready      word.Word // 72   headers committed so far
	brk        word.Word // 80   bytes of the data segment handed out so far
	hints      word.Word // 88   epoch of the free lists
	lost       word.Word // 96   hintsKept, hintsLost or hintsSweeping
	_          [24]byte
	budget     word.Of[word.Budget] // 128  pages charged, with the stamp of the changing lane
	_          [56]byte
	recovery   word.Word           // 192  the reaper: epoch 32 | WAIT 1 | seat + 1
	deathEpoch word.Word           // 200  deaths noticed
	members    word.Word           // 208  joins and leaves
	pressure   word.Word           // 216  times a participant ran out of budget
	reaped     word.Word           // 224  participants reaped after a death
	dropped    word.Word           // 232  messages dropped because their reader died
	lanes      word.Word           // 240  number of seats with lanes that were ever committed
	cpus       word.Word           // 248  processors that the root can keep busy
	spinners   [ownWords]word.Word // 256  participants that spin
	xowait     [ownWords]word.Word // 288  participants that wait for a stamp to clear
	memwait    [ownWords]word.Word // 320  participants that wait for memory
	relief     word.Word           // 352  0, or 1 + blocks freed since the first wait for memory
	names      word.Word           // 360  handle of the board of names, possibly stale; 0: none yet

	restarts word.Word // 368  statistics: processes restarted by groups after a failure
	retries  word.Word // 376  statistics: tasks rerun by pools after the death of a worker

	lists [classCount]word.Word // 384  heads of the free lists: epoch 12 | tag 20 | index 32
}

// participant is one seat of the participant table.
type participant struct {
	_ structs.HostLayout

	state word.Of[word.Participant] // epoch 32 | participantState
	pid   word.Word
	start word.Word // process start time in clock ticks since boot

	collected word.Word // the newest pressure that it has collected for
	nap       word.Word // state of its waiting goroutine: awake, napping, roused by a topic
	bell      word.Word // name of its doorbell
	missed    word.Word // 1: a topic did not fit into the queue of its doorbell
	_         [200]byte
}

// laneRec holds the data that a reaper needs about a lane. Only the lane itself may write it, or a
// reaper on behalf of a dead one.
//
// Invariant (docs/memory.md, "Control segment"): opseq only increases, and a record must not be
// reset when the seat gets another participant. So a slot with a lane and an opseq identifies one
// put in the domain's whole life.
type laneRec struct {
	_ structs.HostLayout

	opseq  word.Word // number of the lane's newest put; must never be reset
	block  word.Word // index of the block with pages being committed or punched
	from   word.Word // committed bytes of the block before
	target word.Word // committed bytes of the block after
	phase  word.Word // phaseIdle, phaseCharged or phaseShrink
	allocs word.Word // statistics: blocks allocated
	copied word.Word // statistics: bytes copied into or out of blocks by Shoal
	_      [8]byte
}

// block is one block header. docs/memory.md specifies the states, the extents and the protocol.
//
// own, ext, committed and next must change only under a stamp of w, with two exceptions: next may
// change at any time, as a hint that may be wrong, and a participant may change its own bit, which
// keeps the block from being freed.
type block struct {
	_ structs.HostLayout

	own       [ownWords]word.Word // one bit per participant
	w         word.Of[word.State] // generation 32 | transit 12 | ALLOC, WAIT, GONE | kind 3 | lane 14
	ext       word.Word           // extent: location, class and kind of its bytes
	committed word.Word           // bytes backed by pages and charged
	next      word.Word           // free-list hint: epoch 31 | listed 1 | next 32
}

// layout returns the layout of the shared memory in this program. Builds of one version may also
// differ in their layouts, on different kinds of machines.
func layout() socket.Layout { return socket.Layout{Version: protocolVersion, Hash: layoutHash()} }

// Layout returns the layout of the domain's shared memory.
func (d *Domain) Layout() socket.Layout { return layout() }

// layoutHash returns a hash of the sizes and offsets of the shared structures.
//
// Two programs with different layouts must not join the same domain: the hash must be compared
// before any other word is trusted.
func layoutHash() uint64 {
	h := fnv.New64a()
	for _, v := range []uintptr{
		protocolVersion,
		unsafe.Sizeof(header{}), unsafe.Sizeof(participant{}), unsafe.Sizeof(laneRec{}), unsafe.Sizeof(block{}),
		unsafe.Sizeof(ring{}), unsafe.Sizeof(slot{}), unsafe.Sizeof(cell{}), cellHead,
		unsafe.Offsetof(header{}.blocks), unsafe.Offsetof(header{}.budget), unsafe.Offsetof(header{}.recovery),
		unsafe.Offsetof(header{}.lists), unsafe.Offsetof(block{}.w), unsafe.Offsetof(laneRec{}.phase),
		offParticipants, offLanes, offBlocks, word.MaxParticipants, lanesPerSeat, word.MaxBlocks, classCount, pageSize,
	} {
		var b [8]byte
		for i := range b {
			b[i] = byte(v >> (8 * i))
		}
		h.Write(b[:])
	}
	return h.Sum64()
}
