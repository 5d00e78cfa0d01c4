package procfs

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Group holds the counters of a process's control group, of version 1 or 2.
type Group struct {
	Path        string
	OOMKills    uint64
	MemoryLimit uint64 // 0 if there is none
	MemoryPeak  uint64
	ThrottledNS uint64  // total time without CPU because the quota was used up
	Throttled   uint64  // periods with throttling
	Quota       float64 // in CPUs; 0 if there is none
	CPUGroup    string
}

// unlimited is the least memory limit that means none. Version 1 reports the greatest number of
// pages.
const unlimited = 1 << 60

// ReadGroup reads the counters of the control groups of a process. The caller must have called
// ReadIdentity. Counters that cannot be read are 0.
func (s System) ReadGroup(p *Process) Group {
	var g Group
	if path, ok := p.Groups["memory"]; ok {
		dir := filepath.Join(s.Cgroup, "memory", path)
		g.Path = path
		g.OOMKills = readKey(filepath.Join(dir, "memory.oom_control"), "oom_kill")
		g.MemoryLimit = readNumber(filepath.Join(dir, "memory.limit_in_bytes"))
		g.MemoryPeak = readNumber(filepath.Join(dir, "memory.max_usage_in_bytes"))
	} else if path, ok := p.Groups[""]; ok {
		dir := filepath.Join(s.Cgroup, path)
		g.Path = path
		g.OOMKills = readKey(filepath.Join(dir, "memory.events"), "oom_kill")
		g.MemoryLimit = readNumber(filepath.Join(dir, "memory.max"))
		g.MemoryPeak = readNumber(filepath.Join(dir, "memory.peak"))
	}
	if g.MemoryLimit >= unlimited {
		g.MemoryLimit = 0
	}
	s.readCPU(p, &g)
	return g
}

func (s System) readCPU(p *Process, g *Group) {
	if path, ok := p.Groups["cpu"]; ok {
		dir := filepath.Join(s.Cgroup, "cpu", path)
		g.CPUGroup = path
		g.Throttled = readKey(filepath.Join(dir, "cpu.stat"), "nr_throttled")
		g.ThrottledNS = readKey(filepath.Join(dir, "cpu.stat"), "throttled_time")
		quota, period := readNumber(filepath.Join(dir, "cpu.cfs_quota_us")),
			readNumber(filepath.Join(dir, "cpu.cfs_period_us"))
		if period > 0 {
			g.Quota = float64(quota) / float64(period) // the quota -1 is read as 0
		}
		return
	}
	path := p.Groups[""]
	dir := filepath.Join(s.Cgroup, path)
	g.CPUGroup = path
	g.Throttled = readKey(filepath.Join(dir, "cpu.stat"), "nr_throttled")
	g.ThrottledNS = 1000 * readKey(filepath.Join(dir, "cpu.stat"), "throttled_usec")
	text, _ := os.ReadFile(filepath.Join(dir, "cpu.max"))
	if f := strings.Fields(string(text)); len(f) == 2 {
		quota, err := strconv.ParseFloat(f[0], 64)
		period, err2 := strconv.ParseFloat(f[1], 64)
		if err == nil && err2 == nil && period > 0 {
			g.Quota = quota / period
		}
	}
}

// readKey returns the number after a key in a file of lines, or 0.
func readKey(file, key string) uint64 {
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok && name == key {
			n, _ := strconv.ParseUint(value, 10, 64)
			return n
		}
	}
	return 0
}

// readNumber returns the number in a file, or 0 for other texts such as "max" and if the file
// cannot be read.
func readNumber(file string) uint64 {
	text, _ := os.ReadFile(file)
	n, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n
}
