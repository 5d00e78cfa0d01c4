package shm

// Stats are a domain's counters. They are read one after the other while others work, so they may
// not fit together to the last byte unless the domain is at rest.
type Stats struct {
	Participants int   // living ones
	Limit        int64 // budget in bytes
	Committed    int64 // bytes charged to the budget: of blocks in use, and of idle ones that are kept warm
	Blocks       int   // blocks in use
	Bytes        int64 // committed bytes of blocks in use
	InTransit    int   // references that messages hold
	Idle         int   // free blocks
	IdleBytes    int64 // committed bytes of free blocks
	Allocs       int64 // blocks allocated since the domain was made, by every participant
	Copied       int64 // bytes copied into or out of blocks, as far as packages above this one count them
	Reaped       int   // participants that died and were reaped
	Dropped      int   // messages dropped because their reader died
}

// A Report is what a domain tells about itself.
type Report struct {
	PID     int // of the process that reports
	Seat    int
	Stats   Stats
	Holders []Holder // who holds memory, largest first
	Names   []string // that are bound, sorted
}

// A Holder is a participant and the bytes of the blocks that it holds.
type Holder struct {
	PID   int
	Seat  int
	Bytes int64
}
