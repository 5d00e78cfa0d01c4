package shm

// Stats contains the counters of a domain, of all its processes together. shoal.MemoryStats
// returns it. The counters are not read atomically: they may be inconsistent if processes
// allocate and free concurrently.
type Stats struct {
	Participants int   // living participants
	Limit        int64 // budget in bytes
	Committed    int64 // bytes charged to the budget, for blocks in use and idle blocks
	Blocks       int   // blocks in use
	Bytes        int64 // committed bytes of blocks in use
	InTransit    int   // references to blocks held by unread messages
	Idle         int   // free blocks with pages kept for the next allocation
	IdleBytes    int64 // committed bytes of idle blocks
	Allocs       int64 // blocks allocated by all participants since the creation of the domain
	Copied       int64 // bytes that Shoal's packages copied into or out of blocks
	Reaped       int   // participants that died and have been reaped
	Dropped      int   // messages lost because the process that was reading them died
	Restarts     int   // processes restarted by groups, by shoal.Options.Restart
	Retries      int   // tasks repeated by pools, by pool.Options.Retries
}

// A Report describes a domain, as one of its processes has reported it to shoal.Inspect: its
// counters, its largest memory holders and its names.
type Report struct {
	PID     int // process id of the process that created the report
	Seat    int // seat of that process in the domain, 0 to 255
	Stats   Stats
	Holders []Holder // processes that hold memory, largest first
	Names   []string // bound names, sorted
}

// A Holder is a process of the domain, with the total size of the blocks that it holds.
type Holder struct {
	PID   int
	Seat  int
	Bytes int64
}
