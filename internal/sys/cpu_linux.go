package sys

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// CPUs returns how many processors this process can keep busy: the smaller of its affinity mask at
// start and the quota of its control groups and all their visible ancestors, rounded up. At least
// 1.
func CPUs() int { return cpus(rootFS(), runtime.NumCPU()) }

func cpus(root fs.FS, affinity int) int {
	if quota := quotaCPUs(root); quota > 0 {
		affinity = min(affinity, int(math.Ceil(quota)))
	}
	return max(affinity, 1)
}

// CPUQuota returns the time of how many processors the control groups of this process and all their
// visible ancestors allow. It returns 0 if there is no limit.
func CPUQuota() float64 { return quotaCPUs(rootFS()) }

func quotaCPUs(root fs.FS) (least float64) {
	groups, err := cgroups(root, "cpu")
	if err != nil {
		return 0 // without the files there is no quota to see
	}
	for _, g := range groups {
		if quota, period := g.cpuQuota(); quota > 0 && period > 0 {
			if n := float64(quota) / float64(period); least == 0 || n < least {
				least = n
			}
		}
	}
	return least
}

// MachineCPUs returns how many processors the machine has running, whether this process may use
// them or not.
func MachineCPUs() int { return machineCPUs(rootFS()) }

func machineCPUs(root fs.FS) (n int) {
	data, _ := fs.ReadFile(root, "proc/stat")
	for line := range strings.Lines(string(data)) {
		name, _, _ := strings.Cut(line, " ")
		if _, err := strconv.Atoi(strings.TrimPrefix(name, "cpu")); err == nil {
			n++
		}
	}
	return max(n, 1)
}

// A CPUTime is how long all processors together have worked and rested since the machine started.
type CPUTime struct{ Busy, Idle time.Duration }

// MachineTime returns the time of the machine's processors, to the hundredth of a second.
func MachineTime() (CPUTime, error) { return machineTime(rootFS()) }

// machineTime reads the first line of /proc/stat: user nice system idle iowait irq softirq steal,
// in ticks of 10 ms. The later fields are part of the first two.
func machineTime(root fs.FS) (t CPUTime, err error) {
	data, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return t, fmt.Errorf("read the time of the processors: %w", err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return t, fmt.Errorf("read the time of the processors: /proc/stat begins with %q", line)
	}
	for i, s := range f[1:9] {
		ticks, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return t, fmt.Errorf("read the time of the processors: %w", err)
		}
		if d := time.Duration(ticks) * (10 * time.Millisecond); i == 3 || i == 4 {
			t.Idle += d
		} else {
			t.Busy += d
		}
	}
	return t, nil
}

// cpuQuota returns the microseconds of processor time that the group has in each period. quota is 0
// if there is no limit.
func (g cgroup) cpuQuota() (quota, period int64) {
	if !g.unified {
		quota, _ = g.number("cpu.cfs_quota_us") // -1: none
		period, _ = g.number("cpu.cfs_period_us")
		return max(quota, 0), period
	}
	data, err := fs.ReadFile(g.root, path.Join(g.dir, "cpu.max"))
	f := strings.Fields(string(data))
	if err != nil || len(f) != 2 || f[0] == "max" {
		return 0, 0
	}
	quota, _ = strconv.ParseInt(f[0], 10, 64)
	period, _ = strconv.ParseInt(f[1], 10, 64)
	return max(quota, 0), period
}

// defaultAddressBits is what amd64 gives a process that does not ask for more. arm64 gives at least
// as much if it has 48-bit addresses.
const defaultAddressBits = 47

// AddressBits returns how many bits of address a mapping of this process can have at most.
func AddressBits() int { return addressBits(rootFS()) }

// addressBits reads the processor's virtual width. The kernel keeps half of this width, one bit,
// for itself. With five-level page tables (57 bits) the kernel still places mappings below 47 bits
// unless a process asks for more.
func addressBits(root fs.FS) int {
	data, err := fs.ReadFile(root, "proc/cpuinfo")
	if err != nil {
		return defaultAddressBits
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) != "address sizes" {
			continue
		}
		_, value, _ = strings.Cut(value, ",")
		bits, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " bits virtual"))
		if err == nil && bits > 32 {
			return min(bits-1, defaultAddressBits)
		}
	}
	return defaultAddressBits
}
