package doctor

import (
	"fmt"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/internal/words"
)

const (
	manySwitches = 100       // involuntary switches per second and CPU: contention
	littleMemory = 256 << 20 // bytes
	fewFiles     = 64
)

// advise returns the settings that the user should change. It never returns nil.
func advise(r *Report) (advice []string) {
	advice = []string{} // encoded as [] in JSON, not as null
	say := func(format string, args ...any) { advice = append(advice, fmt.Sprintf(format, args...)) }
	if r.Kernel.tooOld() {
		say("Linux %s is too old: Shoal needs %d.%d or later", r.Kernel.Release, oldest[0], oldest[1])
	}
	for _, c := range r.Kernel.Missing {
		say("%s is not available (%s): allow it in the container's seccomp profile", c.Name, c.Err)
	}
	adviseMemory(r.Memory, say)
	for _, d := range r.Domains {
		adviseDomain(d, r.CPUs.Usable, say)
	}
	if n := r.Machine.InvoluntaryPerSecond; n > manySwitches*float64(r.CPUs.Machine) && len(r.Domains) == 0 {
		say("other programs compete for the CPUs (%.0f involuntary switches/s): measurements will be slow now", n)
	}
	return advice
}

func adviseMemory(m Memory, say func(string, ...any)) {
	if m.Budget < littleMemory {
		whose := "the machine"
		if m.CgroupLimit >= 0 && m.CgroupLimit < m.Total {
			whose = "the container"
		}
		say("a new domain would have a budget of only %s: give %s more memory, or set Budget with shoal.SetMemory",
			words.Bytes(m.Budget), whose)
	}
	if m.AddressSpace >= 0 {
		say("the address space is limited to %s (ulimit -v), but a domain reserves more: set it to unlimited",
			words.Bytes(m.AddressSpace))
	}
	if m.FileSize >= 0 {
		say("files are limited to %s (ulimit -f), which also limits shared memory: set it to unlimited",
			words.Bytes(m.FileSize))
	}
	if m.OpenFiles >= 0 && m.OpenFiles < fewFiles {
		say("open files are limited to %d (ulimit -n), but a process needs about ten for each worker that it "+
			"starts: raise it", m.OpenFiles)
	}
}

func adviseDomain(d domains.Domain, usable int, say func(string, ...any)) {
	workers, threads := d.Workers()
	name := fmt.Sprintf("domain %s", d.Address)
	switch {
	case workers > usable:
		say("%s has %d workers on %d CPUs: start %d with one thread each", name, workers, usable, usable)
	case threads > usable:
		say("%s has %d workers with %d threads on %d CPUs: set Options.Threads to %d, or to 0 for the default", name,
			workers, threads, usable, threadShare(usable, workers))
	}
	if n := d.Involuntary(); n > manySwitches*float64(usable) && d.Runnable() > usable {
		say("%s has %.0f involuntary switches/s with %d runnable threads on %d CPUs: set Options.Threads, or "+
			"SetThreads in a worker, to %d",
			name, n, d.Runnable(), usable, threadShare(usable, max(workers, 1)))
	}
	if d.Limit > 0 && d.Committed > d.Limit/10*9 {
		say("%s uses %s of its budget of %s: close unused tensors and queues, or raise Budget with "+
			"shoal.SetMemory", name,
			words.Bytes(d.Committed), words.Bytes(d.Limit))
	}
}
