package shm

// Stats are a domain's counters. They are read one after the other. So while processes allocate and
// free, the counters may disagree by what happened in between.
type Stats struct {
	Participants int   // living ones
	Limit        int64 // budget in bytes
	Committed    int64 // bytes charged to the budget: those of blocks in use and of idle blocks
	Blocks       int   // blocks in use
	Bytes        int64 // committed bytes of blocks in use
	InTransit    int   // references to blocks that unread messages hold
	Idle         int   // free blocks that keep their pages for the next allocation
	IdleBytes    int64 // committed bytes of idle blocks
	Allocs       int64 // blocks allocated since the domain was made, by every participant
	Copied       int64 // bytes that Shoal's packages copied into or out of blocks
	Reaped       int   // participants that died and were reaped
	Dropped      int   // messages that were lost because the process that was reading them died
	Restarts     int   // processes that groups have started again, by shoal.Options.Restart
	Retries      int   // tasks that pools have run again, by pool.Options.Retries
}

// A Report describes a domain: its counters, its largest holders of memory and its names.
type Report struct {
	PID     int // process id of the process that made the report
	Seat    int // seat of that process in the domain, 0 to 255
	Stats   Stats
	Holders []Holder // processes that hold memory, largest first
	Names   []string // bound names, sorted
}

// A Holder is a process of the domain with the bytes of all blocks that it holds.
type Holder struct {
	PID   int
	Seat  int
	Bytes int64
}
