package shm

// Options describe a new domain, the memory of a family of processes. The zero value is the
// default. shoal.SetMemory takes them.
type Options struct {
	// Budget is the most bytes that the domain may commit. 0 means what the machine and the cgroup
	// leave free at the start.
	Budget int64
	// Reserve is the address space of the domain in bytes. 0 means 8 times the machine's memory, at
	// most 1 TiB, less where a limit of this process asks for less.
	Reserve int64
}
