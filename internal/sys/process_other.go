//go:build !linux

package sys

import (
	"os"
	"runtime"
	"time"
)

// StartTime needs Linux.
func StartTime(pid int) (uint64, error) { return 0, unsupported("/proc") }

// Exiting needs Linux.
func Exiting(pid int) bool { return false }

// Stopped needs Linux.
func Stopped(pid int) bool { return false }

// PSS needs Linux.
func PSS(pid int) (int64, error) { return 0, unsupported("/proc") }

// A Resident is the memory of a process that is in RAM, in bytes.
type Resident struct {
	Peak    int64 // the most that there ever was, shared pages included
	Private int64 // anonymous pages now, which the process shares with no other
}

// ResidentMemory needs Linux.
func ResidentMemory(pid int) (Resident, error) { return Resident{}, unsupported("/proc") }

// Switches is how often the threads of a process have given up a processor.
type Switches struct {
	Voluntary   int64 // to wait for something
	Involuntary int64 // because others wanted it
}

// ContextSwitches needs Linux.
func ContextSwitches(pid int) (Switches, error) { return Switches{}, unsupported("/proc") }

// A Load is how much a process asks of the processors.
type Load struct {
	CPU      time.Duration // processor time that it has had, in its life
	Threads  int
	Runnable int // threads that run or could, at this moment
}

// ProcessLoad needs Linux.
func ProcessLoad(pid int) (Load, error) { return Load{}, unsupported("/proc") }

// A ProcessEntry is a row of a table of processes.
type ProcessEntry struct {
	Parent  int
	State   byte          // as in ps: R, S, D, T, t, Z
	CPU     time.Duration // processor time that it has had, in its life
	Threads int
	Start   uint64 // when it started
}

// ProcessTable needs Linux.
func ProcessTable() (map[int]ProcessEntry, error) { return nil, unsupported("/proc") }

// ProcessName needs Linux.
func ProcessName(pid int) (string, error) { return "", unsupported("/proc") }

// Processes needs Linux.
func Processes() ([]int, error) { return nil, unsupported("/proc") }

// OpenFiles needs Linux.
func OpenFiles(pid int) (int, error) { return 0, unsupported("/proc") }

// KillSelf ends the process at once: no deferred call runs, and nothing is flushed.
func KillSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		p.Kill()
	}
	panic("sys: KillSelf: this process cannot kill itself")
}

// StopSelf needs Linux.
func StopSelf() error { return unsupported("tgkill") }

// SetThreadName needs Linux.
func SetThreadName(name string) error { return unsupported("PR_SET_NAME") }

// OpenProcessName needs Linux.
func OpenProcessName() (*os.File, error) { return nil, unsupported("/proc/self/comm") }

// SetSubreaper needs Linux.
func SetSubreaper() error { return unsupported("PR_SET_CHILD_SUBREAPER") }

// FileSizeLimit returns -1: no limit is known.
func FileSizeLimit() int64 { return -1 }

// CheckFileSize returns nil: no limit is known.
func CheckFileSize(int64) error { return nil }

// OpenFilesOf needs Linux.
func OpenFilesOf(int) (open, limit int64, err error) { return 0, -1, unsupported("/proc") }

// OpenFileLimit returns -1: no limit is known.
func OpenFileLimit() int64 { return -1 }

// KernelRelease needs Linux.
func KernelRelease() (string, error) { return "", unsupported("/proc") }

// AddressSpaceLimit returns -1: no limit is known.
func AddressSpaceLimit() int64 { return -1 }

// AddressSpaceLeft returns -1: no limit is known.
func AddressSpaceLeft() int64 { return -1 }

// MemoryLimit needs Linux.
func MemoryLimit() (Memory, error) { return Memory{}, unsupported("/proc/meminfo") }

// OOMKills needs Linux.
func OOMKills() (n int64, shared bool, err error) { return 0, true, unsupported("/proc/vmstat") }

// CPUs returns the number of processors that Go sees.
func CPUs() int { return runtime.NumCPU() }

// MachineCPUs returns the number of processors that Go sees.
func MachineCPUs() int { return runtime.NumCPU() }

// CPUQuota returns 0: no quota is known.
func CPUQuota() float64 { return 0 }

// A CPUTime is how long all processors together have worked and rested since the machine started.
type CPUTime struct{ Busy, Idle time.Duration }

// MachineTime needs Linux.
func MachineTime() (CPUTime, error) { return CPUTime{}, unsupported("/proc/stat") }

// AddressBits returns 47, which every 64-bit system gives.
func AddressBits() int { return 47 }
