package shm

// Options describe a new domain, the memory of a family of processes. The zero value is the
// default. shoal.SetMemory takes them.
type Options struct {
	// Budget is the most bytes that the domain may commit. 0 means the memory that the machine and
	// the cgroup have free at the start. If the system refuses as much address space (ulimit -v,
	// vm.overcommit_memory), the budget is smaller and package slog warns. If not even 256 MiB of
	// the free memory can be mapped, or not the Budget that was asked for, the error is
	// ErrAddressSpace.
	Budget int64
	// Reserve is the address space of the domain in bytes. 0 means 8 times the machine's memory, at
	// most 1 TiB, and at most half of what a limit of this process leaves (ulimit -v). If the
	// system refuses a reserve, half of it is tried, and so on down to the Budget.
	Reserve int64
}
