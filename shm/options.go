package shm

// Options describe a new domain, the memory of a family of processes. The zero value is the
// default. shoal.SetMemory takes them.
type Options struct {
	// Budget is the most bytes that the domain may commit. 0 means what the machine and the cgroup
	// leave free at the start, and less where the system refuses this process as much address space
	// (ulimit -v, vm.overcommit_memory): then a warning says so by package slog. That is 256 MiB at
	// least, or what is free if that is less; a domain that would have less is an ErrAddressSpace,
	// as is a Budget that cannot be had.
	Budget int64
	// Reserve is the address space of the domain in bytes. 0 means 8 times the machine's memory, at
	// most 1 TiB, and half of what a limit of this process leaves where that is less. What the
	// system refuses is halved, down to the Budget.
	Reserve int64
}
