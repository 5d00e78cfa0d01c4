package procfs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A System locates the directories that describe a machine.
type System struct {
	Proc   string // usually /proc
	Cgroup string // usually /sys/fs/cgroup
	Log    string // the kernel's messages, usually /dev/kmsg; "" if there are none
	Cache  *Cache // nil if files are read once
}

// Machine is the running machine.
var Machine = System{Proc: "/proc", Cgroup: "/sys/fs/cgroup", Log: "/dev/kmsg"}

// A Process is the state of one process. The methods of [System] fill groups of fields.
type Process struct {
	Stat

	Command []string // arguments; nil for a zombie
	Exe     string   // path of the program file
	Threads []Thread
	Files   []File
	Maps    Maps
	IO      IO
	Groups  map[string]string // control group by controller; "" is version 2
	Env     map[string]string // variables that launchers set
	Limits  Limits
	Denied  []string // files that may not be read
}

// A Stat holds the fields of /proc/PID/stat that are used here. Times are in ticks of 10 ms.
type Stat struct {
	PID, PPID, PGID, SID int
	Name                 string
	State                byte   // R, S, D, T, t, Z or X
	Flags                uint64 // of the kernel's task
	MinorFaults          uint64
	MajorFaults          uint64
	ChildFaults          uint64 // minor faults of the children that it has reaped
	UserTicks            uint64
	SystemTicks          uint64
	ThreadCount          int
	Start                uint64 // ticks since boot
	ResidentPages        int64
	BlockIOTicks         uint64 // 0 unless the kernel accounts delays
	ExitCode             int    // as for wait(2); 0 if it may not be read
	CPU                  int    // the one on which it ran last
}

// Ticks returns the CPU time of the process, user and system, in ticks of 10 ms.
func (s Stat) Ticks() uint64 { return s.UserTicks + s.SystemTicks }

// forkNoExec is PF_FORKNOEXEC.
//
// https://github.com/torvalds/linux/blob/v6.12/include/linux/sched.h#L1670
const forkNoExec = 0x40

// Executed reports whether the process has called execve since it was forked. It is also valid for
// a zombie.
func (s Stat) Executed() bool { return s.Flags&forkNoExec == 0 }

// ExitSignal returns the signal that killed a zombie, or 0.
func (s Stat) ExitSignal() int { return s.ExitCode & 0x7f }

// ExitStatus returns the exit status of a zombie that no signal killed.
func (s Stat) ExitStatus() int { return s.ExitCode >> 8 & 0xff }

// IO holds the counters of /proc/PID/io in bytes and calls.
type IO struct {
	ReadChars, WriteChars, ReadCalls, WriteCalls, ReadBytes, WriteBytes uint64
}

// Limits holds the soft resource limits. A limit of -1 means unlimited or unknown.
type Limits struct {
	OpenFiles int64
}

// PIDs returns the numbers of all visible processes.
func (s System) PIDs() ([]int, error) {
	dir, err := os.Open(s.Proc)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func (s System) path(pid int, name string) string {
	return filepath.Join(s.Proc, strconv.Itoa(pid), name)
}

// ReadStat reads /proc/PID/stat.
func (s System) ReadStat(pid int) (Stat, error) {
	text, err := s.read(s.path(pid, "stat"))
	if err != nil {
		return Stat{}, err
	}
	return parseStat(string(text))
}

// parseStat parses a stat file. It returns errStat if the text has another format. The name is
// in parentheses and may contain any character.
//
// https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
func parseStat(text string) (Stat, error) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return Stat{}, errStat
	}
	var st Stat
	var err error
	if st.PID, err = strconv.Atoi(strings.TrimSpace(text[:open])); err != nil {
		return Stat{}, errStat
	}
	st.Name = text[open+1 : end]
	f := strings.Fields(text[end+1:]) // f[0] is field 3
	if len(f) < 22 {
		return Stat{}, errStat
	}
	num := func(field int) uint64 {
		if field-3 >= len(f) {
			return 0
		}
		n, _ := strconv.ParseUint(f[field-3], 10, 64)
		return n
	}
	st.State = f[0][0]
	st.PPID, st.PGID, st.SID = int(num(4)), int(num(5)), int(num(6))
	st.Flags = num(9)
	st.MinorFaults, st.ChildFaults, st.MajorFaults = num(10), num(11), num(12)
	st.UserTicks, st.SystemTicks = num(14), num(15)
	st.ThreadCount, st.Start = int(num(20)), num(22)
	st.ResidentPages, st.BlockIOTicks = int64(num(24)), num(42)
	st.CPU, st.ExitCode = int(num(39)), int(num(52))
	return st, nil
}

// ReadIdentity fills the fields that do not change while a process runs its program: the
// command, the program file, the control groups, the environment and the limits. It must be
// called once for each process. Files that may not be read are added to Denied.
func (s System) ReadIdentity(p *Process) {
	if text := s.readFile(p, "cmdline"); text != "" {
		p.Command = strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
	}
	p.Exe, _ = os.Readlink(s.path(p.PID, "exe"))
	p.Groups = make(map[string]string)
	for line := range strings.Lines(s.readFile(p, "cgroup")) {
		if part := strings.SplitN(strings.TrimSpace(line), ":", 3); len(part) == 3 {
			for controller := range strings.SplitSeq(part[1], ",") {
				p.Groups[controller] = part[2]
			}
		}
	}
	p.Env = make(map[string]string)
	for variable := range strings.SplitSeq(s.readFile(p, "environ"), "\x00") {
		if name, value, ok := strings.Cut(variable, "="); ok && launcherVariables[name] {
			p.Env[name] = value
		}
	}
	p.Limits.OpenFiles = -1
	for line := range strings.Lines(s.readFile(p, "limits")) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			if n, err := strconv.ParseInt(strings.Fields(rest + " -")[0], 10, 64); err == nil {
				p.Limits.OpenFiles = n
			}
		}
	}
}

// launcherVariables are the environment variables that torchrun and other launchers set.
var launcherVariables = map[string]bool{"RANK": true, "LOCAL_RANK": true, "WORLD_SIZE": true,
	"MASTER_ADDR": true, "MASTER_PORT": true, "OMP_NUM_THREADS": true, "TORCHELASTIC_RUN_ID": true}

// ReadIO fills the I/O counters, or adds "io" to Denied if they may not be read. The caller
// should compare two samples, because they only grow.
func (s System) ReadIO(p *Process) {
	fields := map[string]*uint64{"rchar": &p.IO.ReadChars, "wchar": &p.IO.WriteChars, "syscr": &p.IO.ReadCalls,
		"syscw": &p.IO.WriteCalls, "read_bytes": &p.IO.ReadBytes, "write_bytes": &p.IO.WriteBytes}
	for line := range strings.Lines(s.readCounters(p, "io")) {
		if name, value, ok := strings.Cut(line, ": "); ok && fields[name] != nil {
			*fields[name], _ = strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		}
	}
}

// readCounters is like readFile for a file that is read again and again: it uses the cache, if
// there is one.
func (s System) readCounters(p *Process, name string) string {
	text, err := s.read(s.path(p.PID, name))
	if os.IsPermission(err) {
		p.Denied = append(p.Denied, name)
	}
	return string(text)
}

// readFile returns the text of a file of the process. It returns "" if the file cannot be read,
// and if that needs a permission, adds name to Denied.
func (s System) readFile(p *Process, name string) string {
	text, err := os.ReadFile(s.path(p.PID, name))
	if os.IsPermission(err) {
		p.Denied = append(p.Denied, name)
	}
	return string(text)
}

// CaughtSignals returns the signals that a process handles, as a mask with signal 1 as bit 0. ok is
// false if they may not be read.
func (s System) CaughtSignals(pid int) (mask uint64, ok bool) {
	text, err := os.ReadFile(s.path(pid, "status"))
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(text), "\nSigCgt:")
	line, _, _ := strings.Cut(rest, "\n")
	mask, err = strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return mask, err == nil
}
