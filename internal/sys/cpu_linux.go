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

// CPUs returns the number of processors that this process can keep busy: the smaller of its
// affinity mask at start and the quota of its control groups and their visible ancestors, rounded
// up. It is at least 1.
func CPUs() int { return countCPUs(rootFS(), runtime.NumCPU()) }

func countCPUs(root fs.FS, affinity int) int {
	if quota := quotaCPUs(root); quota > 0 {
		affinity = min(affinity, int(math.Ceil(quota)))
	}
	return max(affinity, 1)
}

// CPUQuota returns the quota of processor time of this process, in processors: the smallest quota
// of its control groups and their visible ancestors. It returns 0 if there is no limit.
func CPUQuota() float64 { return quotaCPUs(rootFS()) }

func quotaCPUs(root fs.FS) (least float64) {
	groups, err := findCgroups(root, "cpu")
	if err != nil {
		return 0 // without the files no quota is visible
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

// MachineCPUs returns the number of processors that are online in the machine, whether or not this
// process may use them. It returns 1 if the number is unknown.
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

// A CPUTime is the busy and idle time of all processors together since the machine started.
type CPUTime struct{ Busy, Idle time.Duration }

// MachineTime returns the busy and idle time of the machine's processors, in steps of 10 ms.
func MachineTime() (CPUTime, error) { return machineTime(rootFS()) }

// machineTime is [MachineTime] with the file system root. It reads the first line of
// /proc/stat: user nice system idle iowait irq softirq steal, in ticks of 10 ms. The later
// fields are included in the first two.
func machineTime(root fs.FS) (t CPUTime, err error) {
	data, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return t, fmt.Errorf("read CPU times: %w", err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return t, fmt.Errorf("read CPU times: first line of /proc/stat is %q", line)
	}
	for i, s := range f[1:9] {
		ticks, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return t, fmt.Errorf("read CPU times: %w", err)
		}
		if d := time.Duration(ticks) * (10 * time.Millisecond); i == 3 || i == 4 {
			t.Idle += d
		} else {
			t.Busy += d
		}
	}
	return t, nil
}

// cpuQuota returns the processor time that the group has in each period, both in microseconds.
// quota is 0 if there is no limit.
func (g cgroup) cpuQuota() (quota, period int64) {
	if !g.unified {
		quota, _ = g.readNumber("cpu.cfs_quota_us") // -1: none
		period, _ = g.readNumber("cpu.cfs_period_us")
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

// defaultAddressBits is the width of the addresses that amd64 gives to a process that does not ask
// for more. arm64 gives at least as much if it has 48-bit addresses.
const defaultAddressBits = 47

// AddressBits returns the maximum number of address bits of a mapping in this process: 47, or
// less if the processor has narrower virtual addresses.
func AddressBits() int { return addressBits(rootFS()) }

// addressBits is [AddressBits] with the file system root. It reads the processor's virtual
// address width. The kernel keeps the upper half of the addresses, so it subtracts one bit.
// With five-level page tables (57 bits) the kernel still places mappings below 47 bits unless a
// process asks for more: https://docs.kernel.org/arch/x86/x86_64/5level-paging.html.
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
