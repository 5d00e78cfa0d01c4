package doctor

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Report is what was found. Its JSON form is for programs.
type Report struct {
	Kernel Kernel `json:"kernel"`
	CPUs   CPUs   `json:"cpus"`
	Memory Memory `json:"memory"`
	domains.Census
	GPUs   any      `json:"gpus"`   // what the program that loads drivers says, or why it says nothing
	Advice []string `json:"advice"` // empty where nothing is to be done
}

// CPUs is what processors there are.
type CPUs struct {
	Machine  int     `json:"machine"`
	Affinity []int   `json:"affinity"` // numbers of those on which this process may run
	Quota    float64 `json:"quota"`    // of the control groups, in processors; 0 where there is none
	Usable   int     `json:"usable"`   // threads that may be busy
	Shares   []Share `json:"shares"`
}

// A Share is the thread budget of each of so many workers.
type Share struct {
	Workers int `json:"workers"`
	Threads int `json:"threads"`
}

// Memory is what memory there is, in bytes; a limit of -1 is none.
type Memory struct {
	Total        int64 `json:"total"`
	Available    int64 `json:"available"`
	CgroupLimit  int64 `json:"cgroup_limit"`
	CgroupUsage  int64 `json:"cgroup_usage"`
	Shared       bool  `json:"shared"` // others use the same room
	Budget       int64 `json:"budget"` // that a domain would get now
	AddressSpace int64 `json:"address_space"`
	FileSize     int64 `json:"file_size"`
	OpenFiles    int64 `json:"open_files"`
}

// workerCounts are those for which the share is shown.
var workerCounts = []int{1, 2, 4, 8}

// Examine looks for as long as span, or until ctx is done.
func Examine(ctx context.Context, span time.Duration) (*Report, error) {
	r := &Report{Kernel: probeKernel(), CPUs: countCPUs()}
	var err error
	if r.Memory, err = measureMemory(); err != nil {
		return nil, err
	}
	if r.Census, err = domains.Look(ctx, span); err != nil {
		return nil, err
	}
	r.Advice = advise(r)
	return r, nil
}

func countCPUs() CPUs {
	c := CPUs{Machine: sys.MachineCPUs(), Quota: sys.CPUQuota(), Usable: sys.CPUs()}
	c.Affinity, _ = sys.Affinity() // where it cannot be read there is none
	for _, n := range workerCounts {
		c.Shares = append(c.Shares, Share{n, share(c.Usable, n)})
	}
	return c
}

// share is floor(N/M), at least one, as package shoal has it.
func share(threads, workers int) int { return max(1, threads/max(1, workers)) }

func measureMemory() (Memory, error) {
	m, err := sys.MemoryLimit()
	if err != nil {
		return Memory{}, err
	}
	return Memory{
		Total: m.Total, Available: m.Available, CgroupLimit: m.CgroupLimit, CgroupUsage: m.CgroupUsage,
		Shared: m.Shared,
		Budget: m.Headroom(), AddressSpace: sys.AddressSpaceLimit(), FileSize: sys.FileSizeLimit(),
		OpenFiles: sys.OpenFileLimit(),
	}, nil
}
