package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
)

// unlimited is the smallest version 1 limit that means none. The kernel writes the largest multiple
// of a page: https://github.com/torvalds/linux/blob/v6.12/include/linux/page_counter.h.
const unlimited = math.MaxInt64 &^ (1<<20 - 1)

// MemoryLimit returns the memory of the machine, and of the control group with the least room among
// versions 1 and 2 and all visible ancestors.
func MemoryLimit() (Memory, error) { return memoryLimit(rootFS(), os.Getpid()) }

func memoryLimit(root fs.FS, self int) (Memory, error) {
	info, err := readKeys(root, "proc/meminfo")
	if err != nil {
		return Memory{}, fmt.Errorf("read memory size: %w", err)
	}
	total, available := info["MemTotal:"], info["MemAvailable:"]
	if total == 0 {
		return Memory{}, errors.New("read memory size: /proc/meminfo has no MemTotal")
	}
	m := Memory{
		Total:       kibToBytes(total),
		Available:   kibToBytes(available),
		Swap:        kibToBytes(info["SwapTotal:"]),
		CgroupLimit: -1,
		Shared:      true,
	}
	groups, err := findCgroups(root, "memory")
	if err != nil {
		return Memory{}, fmt.Errorf("find control groups: %w", err)
	}
	inner := "" // our own directory in the current group, if it is an ancestor
	for _, g := range groups {
		here := g.readMemory()
		if here.CgroupLimit >= 0 && (m.CgroupLimit < 0 || here.cgroupRoom() < m.cgroupRoom()) {
			here.Total, here.Available, here.Swap, here.Shared = m.Total, m.Available, m.Swap, g.isShared(self, inner)
			m = here
		}
		inner = g.dir
	}
	return m, nil
}

// readMemory returns the limit, the usage and the reclaimable memory of one group. The limit is
// -1 if the group has none. File cache is counted by its LRU lists, which exclude shared
// memory. The "file" and "cache" counters include shared memory, but the kernel cannot drop it:
// https://docs.kernel.org/admin-guide/cgroup-v2.html.
func (g cgroup) readMemory() Memory {
	m := Memory{CgroupLimit: -1}
	// if missing, nothing is known to be reclaimable
	stat, _ := readKeys(g.root, path.Join(g.dir, "memory.stat"))
	usage, cache := "memory.current", stat["active_file"]+stat["inactive_file"]
	if g.unified {
		m.lowerLimit(g.readNumber("memory.max"))
		m.lowerLimit(g.readNumber("memory.high")) // above it the kernel slows the process down to a crawl
	} else {
		usage, cache = "memory.usage_in_bytes", stat["total_active_file"]+stat["total_inactive_file"]
		m.lowerLimit(g.readNumber("memory.limit_in_bytes"))
		// includes the limits of invisible ancestors
		ancestors, ok := stat["hierarchical_memory_limit"]
		m.lowerLimit(ancestors, ok)
	}
	if m.CgroupLimit >= 0 {
		m.CgroupUsage, _ = g.readNumber(usage)
		m.CgroupReclaimable = max(0, min(cache, m.CgroupUsage))
	}
	return m
}

func (m *Memory) lowerLimit(limit int64, ok bool) {
	if ok && limit < unlimited && (m.CgroupLimit < 0 || limit < m.CgroupLimit) {
		m.CgroupLimit = limit
	}
}

// OOMKills returns the number of processes that the kernel has killed for lack of memory in the
// control group of this process, since the group was created. shared is true if other processes
// use the group, so that an increase may not concern this process. Without a memory control
// group OOMKills returns the count of the whole machine, and shared is true.
func OOMKills() (n int64, shared bool, err error) { return oomKills(rootFS(), os.Getpid()) }

func oomKills(root fs.FS, self int) (n int64, shared bool, err error) {
	groups, err := findCgroups(root, "memory")
	if err != nil {
		return 0, true, fmt.Errorf("find control groups: %w", err)
	}
	// the innermost group with a count, which is where the kernel counts a victim
	for _, g := range groups {
		file := "memory.oom_control"
		if g.unified {
			file = "memory.events"
		}
		if n, err := readKey(root, path.Join(g.dir, file), "oom_kill"); err == nil {
			return n, g.isShared(self, ""), nil
		}
	}
	n, err = readKey(root, "proc/vmstat", "oom_kill")
	return n, true, err
}
