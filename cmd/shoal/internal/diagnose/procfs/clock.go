package procfs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Uptime returns the time since boot, or 0 if it may not be read.
func (s System) Uptime() time.Duration {
	text, _ := os.ReadFile(filepath.Join(s.Proc, "uptime"))
	first, _, _ := strings.Cut(string(text), " ")
	seconds, _ := strconv.ParseFloat(first, 64)
	return time.Duration(seconds * float64(time.Second))
}

// SinceRun returns the time since a sleeping thread of a process ran last. ok is false if the
// kernel does not tell. The clock is the one of the thread's CPU, which a hypervisor may
// have slowed down, so the true time may be longer but not shorter.
func (s System) SinceRun(pid int, t Thread) (since time.Duration, ok bool) {
	last, ok := readRunTime(s.path(pid, "task/"+strconv.Itoa(t.PID)+"/sched"))
	if !ok {
		return 0, false
	}
	var now time.Duration
	err := sys.OnCPU(t.CPU, func() { now, ok = readRunTime(filepath.Join(s.Proc, "thread-self/sched")) })
	if err != nil || !ok {
		return 0, false
	}
	return max(0, now-last), true
}

// readRunTime returns the time when a thread ran last, by the clock of its CPU, or false if its
// sched file, at path, does not tell. It is not the time since boot, because it leaves out the
// time that a hypervisor took away, which differs by CPU.
//
// https://github.com/torvalds/linux/blob/v6.12/kernel/sched/debug.c#L1108
func readRunTime(path string) (time.Duration, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) != "se.exec_start" {
			continue
		}
		ms, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return time.Duration(ms * float64(time.Millisecond)), err == nil && ms > 0
	}
	return 0, false
}
