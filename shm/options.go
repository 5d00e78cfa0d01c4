package shm

// Options are the options of a new domain, the shared memory of one program. The zero value
// contains the defaults. They must be passed to shoal.SetMemory before the program shares
// memory.
type Options struct {
	// Budget is the maximum number of bytes that the domain may commit. 0 means the memory that the
	// machine and the cgroup have free at the start. If the system refuses that much address space
	// (ulimit -v, vm.overcommit_memory), the budget is reduced and package slog warns.
	// ErrAddressSpace is returned if an explicit Budget, or 256 MiB of the free memory, cannot be
	// mapped.
	Budget int64
	// Reserve is the address space of the domain in bytes. 0 means 8 times the machine's memory, at
	// most 1 TiB, and at most half of the process's remaining limit (ulimit -v). If the system
	// refuses it, half of it is tried, and so on down to the Budget.
	Reserve int64
}
