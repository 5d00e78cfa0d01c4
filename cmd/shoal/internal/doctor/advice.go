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
		say("%s does not work here (%s): allow it in the seccomp profile of the container", c.Name, c.Err)
	}
	adviseMemory(r.Memory, say)
	for _, d := range r.Domains {
		adviseDomain(d, r.CPUs.Usable, say)
	}
	if n := r.Machine.InvoluntaryPerSecond; n > manySwitches*float64(r.CPUs.Machine) && len(r.Domains) == 0 {
		say("other programs take the processors from each other (%.0f involuntary switches a second): what is measured now will be slow", n)
	}
	return advice
}

func adviseMemory(m Memory, say func(string, ...any)) {
	if m.Budget < littleMemory {
		whose := "the machine"
		if m.CgroupLimit >= 0 && m.CgroupLimit < m.Total {
			whose = "the container"
		}
		say("a domain would get a budget of only %s: give %s more memory, or set Budget knowingly by shoal.SetMemory", words.Bytes(m.Budget), whose)
	}
	if m.AddressSpace >= 0 {
		say("the address space is limited to %s (ulimit -v): a domain reserves more; set it to unlimited",
			words.Bytes(m.AddressSpace))
	}
	if m.FileSize >= 0 {
		say("files are limited to %s (ulimit -f): memory that is shared is a file as well; set it to unlimited",
			words.Bytes(m.FileSize))
	}
	if m.OpenFiles >= 0 && m.OpenFiles < fewFiles {
		say("only %d files may be open (ulimit -n): each worker needs about ten in its starter", m.OpenFiles)
	}
}

func adviseDomain(d domains.Domain, usable int, say func(string, ...any)) {
	workers, threads := d.Workers()
	name := fmt.Sprintf("domain %s", d.Address)
	switch {
	case workers > usable:
		say("%s has %d workers on %d CPUs: start %d, which have one thread each", name, workers, usable, usable)
	case threads > usable:
		say("%s has %d workers with %d threads on %d CPUs: set Options.Threads to %d, or leave it 0", name,
			workers, threads, usable, share(usable, workers))
	}
	if n := d.Involuntary(); n > manySwitches*float64(usable) && d.Runnable() > usable {
		say("%s is sent away by the kernel %.0f times a second, with %d threads that want %d CPUs: set Options.Threads, or SetThreads in a worker, to %d",
			name, n, d.Runnable(), usable, share(usable, max(workers, 1)))
	}
	if d.Limit > 0 && d.Committed > d.Limit/10*9 {
		say("%s has used %s of its budget of %s: close what is not needed, or raise Budget by shoal.SetMemory", name,
			words.Bytes(d.Committed), words.Bytes(d.Limit))
	}
}
