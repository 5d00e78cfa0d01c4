package doctor

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Report holds the results of an examination. Its JSON encoding is meant for programs.
type Report struct {
	Kernel Kernel `json:"kernel"`
	CPUs   CPUs   `json:"cpus"`
	Memory Memory `json:"memory"`
	domains.Census
	GPUs   any      `json:"gpus"`    // report of the GPU helper, or the error
	Advice []string `json:"advice"`  // settings to change; empty if there are none
	Jobs   any      `json:"pytorch"` // reports about PyTorch jobs
}

// CPUs describes the available processors.
type CPUs struct {
	Machine  int     `json:"machine"`
	Affinity []int   `json:"affinity"` // CPUs that this process may use
	Quota    float64 `json:"quota"`    // cgroup limit in CPUs; 0 means none
	Usable   int     `json:"usable"`   // threads that can run in parallel
	Shares   []Share `json:"shares"`
}

// A Share is the thread budget of each worker for a number of workers.
type Share struct {
	Workers int `json:"workers"`
	Threads int `json:"threads"`
}

// Memory describes the available memory and the limits, in bytes, and the limit of open files. A
// limit of -1 means that there is none.
type Memory struct {
	Total        int64 `json:"total"`
	Available    int64 `json:"available"`
	CgroupLimit  int64 `json:"cgroup_limit"`
	CgroupUsage  int64 `json:"cgroup_usage"`
	Shared       bool  `json:"shared"` // other processes share it
	Budget       int64 `json:"budget"` // limit for a new domain now
	AddressSpace int64 `json:"address_space"`
	FileSize     int64 `json:"file_size"`
	OpenFiles    int64 `json:"open_files"`
}

// workerCounts are the numbers of workers in [CPUs].Shares.
var workerCounts = []int{1, 2, 4, 8}

// Examine observes the machine and its Shoal programs for the duration span. It returns an error if
// the memory limits or the processes cannot be read, or if ctx is done earlier.
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
	c.Affinity, _ = sys.Affinity() // nil if it cannot be read
	for _, n := range workerCounts {
		c.Shares = append(c.Shares, Share{n, threadShare(c.Usable, n)})
	}
	return c
}

// threadShare returns floor(threads/workers), at least 1. It counts less than one worker as one. It
// must agree with package shoal.
func threadShare(threads, workers int) int { return max(1, threads/max(1, workers)) }

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
