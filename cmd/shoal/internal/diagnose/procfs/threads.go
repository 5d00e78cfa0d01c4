package procfs

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

var errStat = errors.New("the stat file has another format than proc(5) describes")

// A Thread is the state of one thread.
type Thread struct {
	Stat           // PID is the thread's number
	Wait    string // kernel function that put it to sleep; "" or "0" if it runs or may not be read
	Call    Call
	RunNS   uint64 // time on a CPU
	QueueNS uint64 // time in a run queue, waiting for a CPU
}

// A Call is the system call that blocks a thread.
type Call struct {
	Number int // -1 if there is none or if it may not be read
	Args   [6]uint64
}

// ReadThreads fills Threads. If full is set, it also reads the waits and the scheduler counters.
// If the threads cannot be listed, Threads is unchanged.
func (s System) ReadThreads(p *Process, full bool) {
	names, err := os.ReadDir(s.path(p.PID, "task"))
	if err != nil {
		return
	}
	p.Threads = p.Threads[:0]
	for _, entry := range names {
		dir := filepath.Join(s.path(p.PID, "task"), entry.Name())
		text, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		st, err := parseStat(string(text))
		if err != nil {
			continue
		}
		t := Thread{Stat: st, Call: Call{Number: -1}}
		if full {
			s.readWait(dir, &t)
			s.readTimes(dir, &t)
		}
		p.Threads = append(p.Threads, t)
	}
}

func (s System) readWait(dir string, t *Thread) {
	wait, _ := s.read(dir + "/wchan")
	t.Wait = strings.TrimSpace(string(wait))
	call, _ := s.read(dir + "/syscall")
	t.Call = parseCall(string(call))
}

// readTimes reads the scheduler's counters of a thread. If they cannot be read, t is unchanged.
func (s System) readTimes(dir string, t *Thread) {
	times, _ := s.read(dir + "/schedstat")
	if f := strings.Fields(string(times)); len(f) >= 2 {
		t.RunNS, _ = strconv.ParseUint(f[0], 10, 64)
		t.QueueNS, _ = strconv.ParseUint(f[1], 10, 64)
	}
}

// parseCall parses a syscall file: "running", or the number, six arguments and two registers. For
// "running" and any other text, Number is -1.
func parseCall(text string) Call {
	c := Call{Number: -1}
	f := strings.Fields(text)
	if len(f) < 7 {
		return c
	}
	n, err := strconv.Atoi(f[0])
	if err != nil {
		return c
	}
	c.Number = n
	for i := range c.Args {
		c.Args[i], _ = strconv.ParseUint(strings.TrimPrefix(f[1+i], "0x"), 16, 64)
	}
	return c
}

// ReadThread returns the main thread of a process with its wait. The caller must have read the
// stat file into p. ReadThread does not read the scheduler's counters.
func (s System) ReadThread(p *Process) Thread {
	t := Thread{Stat: p.Stat, Call: Call{Number: -1}}
	s.readWait(s.path(p.PID, ""), &t)
	return t
}
