//go:build !linux

package sys

import (
	"os"
	"runtime"
	"time"
)

// StartTime returns an error that wraps [errors.ErrUnsupported]: reading the start time of a
// process needs Linux.
func StartTime(pid int) (uint64, error) { return 0, unsupportedError("/proc") }

// Exiting returns false: reading the state of a process needs Linux.
func Exiting(pid int) bool { return false }

// Stopped returns false: reading the state of a process needs Linux.
func Stopped(pid int) bool { return false }

// PSS returns an error that wraps [errors.ErrUnsupported]: reading the memory of a process
// needs Linux.
func PSS(pid int) (int64, error) { return 0, unsupportedError("/proc") }

// A Resident is the resident memory of a process, in bytes.
type Resident struct {
	Peak    int64 // maximum since the process began, including shared pages
	Private int64 // current anonymous pages, which are not shared with other processes
}

// ResidentMemory returns an error that wraps [errors.ErrUnsupported]: reading the memory of a
// process needs Linux.
func ResidentMemory(pid int) (Resident, error) { return Resident{}, unsupportedError("/proc") }

// Switches is the number of context switches of a process's threads.
type Switches struct {
	Voluntary   int64 // to wait for something
	Involuntary int64 // because other threads needed the processor
}

// ContextSwitches returns an error that wraps [errors.ErrUnsupported]: counting the context
// switches of a process needs Linux.
func ContextSwitches(pid int) (Switches, error) { return Switches{}, unsupportedError("/proc") }

// A Load is the demand of a process for processors.
type Load struct {
	CPU      time.Duration // processor time consumed since the process began
	Threads  int
	Runnable int // threads that are currently running or ready to run
}

// ProcessLoad returns an error that wraps [errors.ErrUnsupported]: reading the load of a
// process needs Linux.
func ProcessLoad(pid int) (Load, error) { return Load{}, unsupportedError("/proc") }

// A ProcessEntry describes one process in the result of [ProcessTable].
type ProcessEntry struct {
	Parent  int
	State   byte          // as in ps: R, S, D, T, t, Z
	CPU     time.Duration // processor time consumed since the process began
	Threads int
	Start   uint64 // start time
}

// ProcessTable returns an error that wraps [errors.ErrUnsupported]: listing processes needs
// Linux.
func ProcessTable() (map[int]ProcessEntry, error) { return nil, unsupportedError("/proc") }

// ProcessName returns an error that wraps [errors.ErrUnsupported]: reading the name of a
// process needs Linux.
func ProcessName(pid int) (string, error) { return "", unsupportedError("/proc") }

// Processes returns an error that wraps [errors.ErrUnsupported]: listing processes needs Linux.
func Processes() ([]int, error) { return nil, unsupportedError("/proc") }

// OpenFiles returns an error that wraps [errors.ErrUnsupported]: counting the open files of a
// process needs Linux.
func OpenFiles(pid int) (int, error) { return 0, unsupportedError("/proc") }

// KillSelf kills the process: no deferred call runs, and nothing is flushed.
func KillSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		p.Kill()
	}
	panic("sys: KillSelf: this process cannot kill itself")
}

// StopSelf returns an error that wraps [errors.ErrUnsupported]: stopping this process needs
// Linux.
func StopSelf() error { return unsupportedError("tgkill") }

// SetThreadName returns an error that wraps [errors.ErrUnsupported]: naming a thread needs
// Linux.
func SetThreadName(name string) error { return unsupportedError("PR_SET_NAME") }

// OpenProcessName returns an error that wraps [errors.ErrUnsupported]: naming this process
// needs Linux.
func OpenProcessName() (*os.File, error) { return nil, unsupportedError("/proc/self/comm") }

// SetSubreaper returns an error that wraps [errors.ErrUnsupported]: becoming the parent of
// orphaned descendants needs Linux.
func SetSubreaper() error { return unsupportedError("PR_SET_CHILD_SUBREAPER") }

// FileSizeLimit returns -1: no limit is known.
func FileSizeLimit() int64 { return -1 }

// CheckFileSize returns nil: no limit is known.
func CheckFileSize(int64) error { return nil }

// OpenFilesOf returns an error that wraps [errors.ErrUnsupported]: counting the open files of a
// process needs Linux.
func OpenFilesOf(int) (open, limit int64, err error) { return 0, -1, unsupportedError("/proc") }

// OpenFileLimit returns -1: no limit is known.
func OpenFileLimit() int64 { return -1 }

// KernelRelease returns an error that wraps [errors.ErrUnsupported]: reading the release of the
// kernel needs Linux.
func KernelRelease() (string, error) { return "", unsupportedError("/proc") }

// AddressSpaceLimit returns -1: no limit is known.
func AddressSpaceLimit() int64 { return -1 }

// AddressSpaceLeft returns -1: no limit is known.
func AddressSpaceLeft() int64 { return -1 }

// MemoryLimit returns an error that wraps [errors.ErrUnsupported]: reading the memory limits
// needs Linux.
func MemoryLimit() (Memory, error) { return Memory{}, unsupportedError("/proc/meminfo") }

// OOMKills returns an error that wraps [errors.ErrUnsupported]: counting the processes killed for
// lack of memory, and finding out whether the count is shared with other programs, needs Linux.
func OOMKills() (n int64, shared bool, err error) { return 0, true, unsupportedError("/proc/vmstat") }

// CPUs returns the number of processors that Go sees.
func CPUs() int { return runtime.NumCPU() }

// MachineCPUs returns the number of processors that Go sees.
func MachineCPUs() int { return runtime.NumCPU() }

// CPUQuota returns 0: no quota is known.
func CPUQuota() float64 { return 0 }

// A CPUTime is the busy and idle time of all processors together since the machine started.
type CPUTime struct{ Busy, Idle time.Duration }

// MachineTime returns an error that wraps [errors.ErrUnsupported]: reading the times of the
// processors needs Linux.
func MachineTime() (CPUTime, error) { return CPUTime{}, unsupportedError("/proc/stat") }

// AddressBits returns 47, which every 64-bit system provides.
func AddressBits() int { return 47 }
