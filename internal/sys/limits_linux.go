package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
)

// unlimited is the least version 1 limit that means none. The kernel writes the largest multiple of
// a page.
const unlimited = math.MaxInt64 &^ (1<<20 - 1)

// MemoryLimit returns the memory that this process has now: the machine's, and that of the control
// group with the least room among versions 1 and 2 and all visible ancestors.
func MemoryLimit() (Memory, error) { return memoryLimit(rootFS(), os.Getpid()) }

func memoryLimit(root fs.FS, self int) (Memory, error) {
	info, err := readKeys(root, "proc/meminfo")
	if err != nil {
		return Memory{}, fmt.Errorf("read the machine's memory: %w", err)
	}
	total, available := info["MemTotal:"], info["MemAvailable:"]
	if total == 0 {
		return Memory{}, errors.New("read the machine's memory: /proc/meminfo has no MemTotal")
	}
	m := Memory{
		Total:       kibibytes(total),
		Available:   kibibytes(available),
		Swap:        kibibytes(info["SwapTotal:"]),
		CgroupLimit: -1,
		Shared:      true,
	}
	groups, err := cgroups(root, "memory")
	if err != nil {
		return Memory{}, fmt.Errorf("find the control groups: %w", err)
	}
	inner := "" // our own directory in the group at hand, if it is an ancestor
	for _, g := range groups {
		here := g.memory()
		if here.CgroupLimit >= 0 && (m.CgroupLimit < 0 || here.cgroupRoom() < m.cgroupRoom()) {
			here.Total, here.Available, here.Swap, here.Shared = m.Total, m.Available, m.Swap, g.shared(self, inner)
			m = here
		}
		inner = g.dir
	}
	return m, nil
}

// memory reads one group. The limit is -1 if the group has none. memory counts file cache by its
// LRU lists, which leave out shared memory. Shared memory is in the "file" and "cache" counters,
// but the kernel cannot drop it.
func (g cgroup) memory() Memory {
	m := Memory{CgroupLimit: -1}
	stat, _ := readKeys(g.root, path.Join(g.dir, "memory.stat")) // missing: nothing is known to be reclaimable
	usage, cache := "memory.current", stat["active_file"]+stat["inactive_file"]
	if g.unified {
		m.restrict(g.number("memory.max"))
		m.restrict(g.number("memory.high")) // beyond it the kernel slows us down to a crawl
	} else {
		usage, cache = "memory.usage_in_bytes", stat["total_active_file"]+stat["total_inactive_file"]
		m.restrict(g.number("memory.limit_in_bytes"))
		ancestors, ok := stat["hierarchical_memory_limit"] // the limit of invisible ancestors as well
		m.restrict(ancestors, ok)
	}
	if m.CgroupLimit >= 0 {
		m.CgroupUsage, _ = g.number(usage)
		m.CgroupReclaimable = max(0, min(cache, m.CgroupUsage))
	}
	return m
}

func (m *Memory) restrict(limit int64, ok bool) {
	if ok && limit < unlimited && (m.CgroupLimit < 0 || limit < m.CgroupLimit) {
		m.CgroupLimit = limit
	}
}

// OOMKills returns how many processes the kernel has killed for lack of memory in the control group
// of this process. It also returns whether others share the group, so that a rise may not be about
// this process. Without a memory control group it counts the whole machine, as shared.
func OOMKills() (n int64, shared bool, err error) { return oomKills(rootFS(), os.Getpid()) }

func oomKills(root fs.FS, self int) (n int64, shared bool, err error) {
	groups, err := cgroups(root, "memory")
	if err != nil {
		return 0, true, fmt.Errorf("find the control groups: %w", err)
	}
	for _, g := range groups { // the innermost group with a count: there the kernel counts a victim
		file := "memory.oom_control"
		if g.unified {
			file = "memory.events"
		}
		if n, err := readKey(root, path.Join(g.dir, file), "oom_kill"); err == nil {
			return n, g.shared(self, ""), nil
		}
	}
	n, err = readKey(root, "proc/vmstat", "oom_kill")
	return n, true, err
}
