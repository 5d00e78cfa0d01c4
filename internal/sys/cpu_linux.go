package sys

import (
	"io/fs"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// CPUs returns how many processors this process can keep busy: the smaller of its affinity mask at start and the
// quota of its control groups and all their visible ancestors, rounded up. At least 1.
func CPUs() int { return cpus(rootFS(), runtime.NumCPU()) }

func cpus(root fs.FS, affinity int) int {
	n := affinity
	groups, err := cgroups(root, "cpu")
	if err != nil {
		return max(n, 1) // without the files there is no quota to see
	}
	for _, g := range groups {
		if quota, period := g.cpuQuota(); quota > 0 && period > 0 {
			n = min(n, int((quota-1)/period)+1)
		}
	}
	return max(n, 1)
}

// cpuQuota returns the microseconds of processor time that the group has in each period; quota is 0 where there is no limit.
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

// defaultAddressBits is what amd64 gives a process that does not ask for more, and arm64 at least where it
// has 48-bit addresses.
const defaultAddressBits = 47

// AddressBits returns how many bits of address a mapping of this process can have at most.
func AddressBits() int { return addressBits(rootFS()) }

// addressBits reads the processor's virtual width, of which the kernel keeps half, one bit. With
// five-level page tables (57 bits) the kernel still places mappings below 47 unless told otherwise.
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
