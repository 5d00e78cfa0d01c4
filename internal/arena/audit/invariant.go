package audit

import "fmt"

// A Violation is a broken invariant of a domain.
type Violation struct {
	Name      string `json:"-"`     // one word for the invariant
	Part      string `json:"part"`  // the structure, such as "block 17" or "ring 5, slot 3"
	Found     string `json:"found"` // the words
	Invariant string `json:"invariant"`
	Section   string `json:"section"` // of docs/memory.md
	Remedy    string `json:"remedy"`
}

// String formats the violation in one line, without the remedy.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s; want: %s (docs/memory.md, %q)", v.Part, v.Found, v.Invariant, v.Section)
}

const (
	remedyCorrupt = "a process wrote outside of its memory: end all processes of this domain and start them again; " +
		"SHOAL_DEBUG=lifetime finds slices that are used too late, SHOAL_DEBUG=verify the write of a wrong state"
	remedyReap = "the memory or the message of a dead process was not released: " +
		"end all processes of this domain and start them again, and report a fault of Shoal"
)

// An invariant is a rule of docs/memory.md.
type invariant struct {
	name    string // one word
	text    string
	section string
	remedy  string
	// brief means that an operation that is in progress may violate the invariant. Such findings
	// count only while no process is stopped or dead.
	brief bool
}

var (
	ruleSeat = &invariant{"seat", "a seat is FREE, LIVE, DEAD or JOINING, and has a process", "Layouts of words",
		remedyCorrupt, false}
	ruleAlive = &invariant{"alive", "a taken seat has a living participant", "The reaper", remedyReap, true}
	ruleBits  = &invariant{"bits", "only participants set bits, and a reaper clears those of the dead", "The reaper",
		remedyReap, false}
	ruleLane   = &invariant{"lane", "a stamp or a claim names a lane of a participant", "The reaper", remedyReap, false}
	ruleCounts = &invariant{"counts", "counts are within their bounds", "Garbage", remedyCorrupt, false}
	ruleBudget = &invariant{"budget", "the budget word has a stamp of ADD or SUB, or none, and WAIT only with a stamp",
		"Budget and commit", remedyCorrupt, false}
	ruleRest  = &invariant{"rest", "no operation is in progress", "Words, stamps, evidence", remedyReap, true}
	rulePhase = &invariant{"phase", "a lane's phase is 0, 1 or 2, and its record names a block and bytes of its extent",
		"Budget and commit", remedyCorrupt, false}
	ruleLeft  = &invariant{"left", "a lane of a free seat has no commit in progress", "The reaper", remedyReap, false}
	ruleNames = &invariant{"board", "the handle of the board is stale, or is a ring that is a board", "Names",
		remedyCorrupt, false}
	ruleList   = &invariant{"list", "a free list has indices of blocks and ends", "Free lists", remedyCorrupt, false}
	ruleListed = &invariant{"listed", "a free block is on a list", "Free hints", remedyReap, true}
	ruleState  = &invariant{"state", "a state word is one that the table of transitions leads to", "Transitions of words",
		remedyCorrupt, false}
	ruleTransit = &invariant{"transit", "t is the number of messages that hold the block", "Why the evidence stays",
		remedyReap, true}
	ruleHolder = &invariant{"holder", "a block is ALLOC while a participant or a message holds it, and only then",
		"Release and try-free", remedyReap, true}
	ruleExtent = &invariant{"extent", "an extent has a known class and kind, and is within the addresses handed out",
		"Garbage", remedyCorrupt, false}
	ruleOverlap = &invariant{"overlap", "no two blocks overlap", "Block header", remedyCorrupt, false}
	rulePages   = &invariant{"pages", "the committed length is whole pages, at most the extent's length", "Garbage",
		remedyCorrupt, false}
	ruleCharge = &invariant{"charge", "pages are charged before they are committed and until they are punched",
		"Budget and commit", remedyReap, true}
	ruleRing = &invariant{"ring", "a ring has a power of two of slots within its block, and a limit of at most as many",
		"Capacity and limit", remedyCorrupt, false}
	rulePosition = &invariant{"position", "the tail is at most the slots ahead of the head", "Tickets", remedyCorrupt, false}
	ruleEnd      = &invariant{"end", "a ring has the tokens of its ends until they are gone", "Ends", remedyReap, true}
	ruleSlot     = &invariant{"slot", "a slot word is one that the table of transitions leads to", "Transitions of words",
		remedyCorrupt, false}
	ruleLap     = &invariant{"lap", "a slot is at the lap of a ticket near the head", "Tickets", remedyCorrupt, false}
	ruleMessage = &invariant{"message", "a message has the handles of blocks that messages hold, each once",
		"Why the evidence stays", remedyCorrupt, false}
	rulePut = &invariant{"put", "a message was put by a lane, with a number that the lane has used", "Lanes",
		remedyCorrupt, false}
	ruleCell = &invariant{"cell", "a cell has a known form and fits into its block", "Cells", remedyCorrupt, false}
	ruleLock = &invariant{"lock", "a lock is FREE, or names a participant that has been in its seat", "Identities",
		remedyCorrupt, false}
	ruleShare = &invariant{"share", "a share names a participant that has been in its seat", "Identities",
		remedyCorrupt, false}
)
