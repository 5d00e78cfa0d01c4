package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// StartTime returns the start time of process pid, in clock ticks since boot. Together with pid
// it identifies one process. The error wraps [fs.ErrNotExist] if there is no such process.
func StartTime(pid int) (uint64, error) { return startTime(rootFS(), pid) }

func startTime(root fs.FS, pid int) (uint64, error) {
	fields, err := statFields(root, pid)
	if err != nil {
		return 0, err
	}
	ticks, err := strconv.ParseUint(fields[22-3], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read start time of process %d: %w", pid, err)
	}
	return ticks, nil
}

// Exiting reports whether process pid has ended, or is about to end and is closing its open
// files. It also returns true if the state of the process cannot be read.
func Exiting(pid int) bool {
	const exiting = 0x4 // PF_EXITING
	fields, err := statFields(rootFS(), pid)
	if err != nil {
		return true
	}
	flags, err := strconv.ParseUint(fields[9-3], 10, 64)
	return err != nil || flags&exiting != 0
}

// Stopped reports whether process pid is suspended until another process continues it: it was
// stopped by a signal or a debugger, or its control group is frozen. It returns false if the
// state of the process cannot be read.
func Stopped(pid int) bool { return isStopped(rootFS(), pid) }

func isStopped(root fs.FS, pid int) bool {
	fields, err := statFields(root, pid)
	if err != nil {
		return false
	}
	if fields[0] == "T" || fields[0] == "t" {
		return true
	}
	// a group that cannot be read is not frozen
	groups, _ := cgroupsOf(root, procFile(pid, "cgroup"), "freezer")
	return slices.ContainsFunc(groups, cgroup.isFrozen)
}

func parentOf(root fs.FS, pid int) (int, error) {
	fields, err := statFields(root, pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fields[4-3])
}

// statFields returns the fields of /proc/pid/stat from the third to the 22nd, so field n of the
// manual has index n-3. The second is the program's name in parentheses, and the name itself
// may contain blanks and parentheses.
func statFields(root fs.FS, pid int) ([]string, error) {
	name := procFile(pid, "stat")
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, fmt.Errorf("read state of process %d: %w", pid, err)
	}
	s := string(data)
	fields := make([]string, 0, 22-2)
	for f := range strings.FieldsSeq(s[strings.LastIndexByte(s, ')')+1:]) {
		if fields = append(fields, f); len(fields) == cap(fields) {
			return fields, nil
		}
	}
	return nil, fmt.Errorf("/%s: got only %d fields", name, len(fields))
}

func procFile(pid int, elem ...string) string {
	return path.Join("proc", strconv.Itoa(pid), path.Join(elem...))
}

// PSS returns the proportional set size of process pid in bytes: its mapped pages, with a page
// mapped by n processes counted as 1/n. The error wraps [fs.ErrPermission] if this process may
// not inspect pid.
func PSS(pid int) (int64, error) { return readPSS(rootFS(), pid) }

func readPSS(root fs.FS, pid int) (int64, error) {
	kb, err := readKey(root, procFile(pid, "smaps_rollup"), "Pss:")
	return kibToBytes(kb), err
}

// A Resident is the resident memory of a process, in bytes.
type Resident struct {
	Peak    int64 // maximum since the process began, including shared pages
	Private int64 // current anonymous pages, which are not shared with other processes
}

// ResidentMemory returns the resident memory of process pid. If there is no such process, the error
// wraps [fs.ErrNotExist], or [unix.ESRCH] if the process ended during the call.
func ResidentMemory(pid int) (Resident, error) { return residentMemory(rootFS(), pid) }

func residentMemory(root fs.FS, pid int) (Resident, error) {
	peak, err := readKey(root, procFile(pid, "status"), "VmHWM:")
	if err != nil {
		return Resident{}, err
	}
	private, err := readKey(root, procFile(pid, "status"), "RssAnon:")
	return Resident{kibToBytes(peak), kibToBytes(private)}, err
}

// Switches is the number of context switches of a process's threads.
type Switches struct {
	Voluntary   int64 // to wait for something
	Involuntary int64 // because other threads needed the processor, rare with enough processors
}

// ContextSwitches returns the context switches of all living threads of process pid.
func ContextSwitches(pid int) (Switches, error) { return contextSwitches(rootFS(), pid) }

func contextSwitches(root fs.FS, pid int) (total Switches, err error) {
	threads, err := fs.ReadDir(root, procFile(pid, "task"))
	if err != nil {
		return total, fmt.Errorf("list threads of process %d: %w", pid, err)
	}
	for _, t := range threads {
		data, err := fs.ReadFile(root, procFile(pid, "task", t.Name(), "status"))
		if err != nil && !isProcessGone(err) {
			return total, fmt.Errorf("read context switches of process %d: %w", pid, err)
		}
		for key, n := range keysOf(data) {
			switch key {
			case "voluntary_ctxt_switches:":
				total.Voluntary += n
			case "nonvoluntary_ctxt_switches:":
				total.Involuntary += n
			}
		}
	}
	return total, nil
}

// A Load is the demand of a process for processors, as [ProcessLoad] returns it.
type Load struct {
	CPU      time.Duration // processor time consumed since the process began, in steps of 10 ms
	Threads  int
	Runnable int // threads that are currently running or ready to run
}

// ProcessLoad returns the load of process pid.
func ProcessLoad(pid int) (Load, error) { return processLoad(rootFS(), pid) }

func processLoad(root fs.FS, pid int) (l Load, err error) {
	fields, err := statFields(root, pid)
	if err != nil {
		return l, err
	}
	for _, f := range fields[14-3 : 16-3] { // user and system time, in ticks
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return l, fmt.Errorf("time of process %d: %w", pid, err)
		}
		l.CPU += time.Duration(ticks) * (10 * time.Millisecond)
	}
	threads, err := fs.ReadDir(root, procFile(pid, "task"))
	if err != nil {
		return l, fmt.Errorf("list threads of process %d: %w", pid, err)
	}
	l.Threads = len(threads)
	for _, t := range threads {
		data, err := fs.ReadFile(root, procFile(pid, "task", t.Name(), "stat"))
		if s := string(data); err == nil && strings.HasPrefix(s[strings.LastIndexByte(s, ')')+1:], " R") {
			l.Runnable++
		}
	}
	return l, nil
}

// A ProcessEntry describes one process in the result of [ProcessTable].
type ProcessEntry struct {
	Parent  int
	State   byte          // as in ps: R, S, D, T, t, Z
	CPU     time.Duration // processor time consumed since the process began, in steps of 10 ms
	Threads int
	Start   uint64 // start time, in clock ticks since boot
}

// ProcessTable returns the processes visible to this one, by their numbers. It reads one file
// for each process, and omits processes that end meanwhile.
func ProcessTable() (map[int]ProcessEntry, error) {
	pids, err := Processes()
	if err != nil {
		return nil, err
	}
	root := rootFS()
	table := make(map[int]ProcessEntry, len(pids))
	for _, pid := range pids {
		if e, err := processEntry(root, pid); err == nil { // otherwise it has ended
			table[pid] = e
		}
	}
	return table, nil
}

func processEntry(root fs.FS, pid int) (e ProcessEntry, err error) {
	fields, err := statFields(root, pid)
	if err != nil {
		return e, err
	}
	number := func(field int) uint64 {
		n, e := strconv.ParseUint(fields[field-3], 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("read field %d of the state of process %d: %w", field, pid, e)
		}
		return n
	}
	e = ProcessEntry{
		Parent: int(number(4)), State: fields[0][0],
		CPU:     time.Duration(number(14)+number(15)) * (10 * time.Millisecond),
		Threads: int(number(20)), Start: number(22),
	}
	return e, err
}

// ProcessName returns the name of process pid as shown by ps, truncated to 15 bytes.
func ProcessName(pid int) (string, error) {
	data, err := fs.ReadFile(rootFS(), procFile(pid, "comm"))
	if err != nil {
		return "", fmt.Errorf("read name of process %d: %w", pid, err)
	}
	return strings.TrimSuffix(string(data), "\n"), nil
}

// Processes returns the numbers of all processes visible to this one, in ascending order.
func Processes() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// isProcessGone reports whether err means that a process or thread ended before it was read.
func isProcessGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// OpenFiles returns the number of descriptors that process pid has open. The error wraps
// [fs.ErrPermission] if this process may not read them.
func OpenFiles(pid int) (int, error) {
	files, err := os.ReadDir("/" + procFile(pid, "fd"))
	if err != nil {
		return 0, fmt.Errorf("count open files of process %d: %w", pid, err)
	}
	n := len(files)
	if pid == os.Getpid() {
		n-- // the directory that is open for reading
	}
	return n, nil
}

// KillSelf kills the process by SIGKILL: no deferred call runs, and nothing is flushed. It panics
// if the signal has no effect, as for process 1 of a container.
func KillSelf() {
	unix.Kill(unix.Getpid(), unix.SIGKILL)
	panic("sys: KillSelf: this process survived SIGKILL: do not run it as process 1 of a container")
}

// StopSelf stops the whole process by SIGSTOP, and returns after another process has continued
// it. The signal is sent to the calling thread, so that the calling thread cannot go on while
// another one handles the signal.
func StopSelf() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
}

// SetThreadName sets the name of the calling thread, and of threads that it starts later, for
// ps and top. The caller should have locked the goroutine to its thread. The name of the main
// thread is the name of the process:
// https://man7.org/linux/man-pages/man2/PR_SET_NAME.2const.html. The kernel truncates the name
// to 15 bytes.
func SetThreadName(name string) error {
	b := append([]byte(name), 0)
	_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&b[0])), 0)
	if errno != 0 {
		return fmt.Errorf("set thread name: %w", errno)
	}
	return nil
}

// OpenProcessName opens the name of the main thread, which is the name of this process. One Write
// to the file, from any thread, sets the name:
// https://man7.org/linux/man-pages/man5/proc_pid_comm.5.html. The kernel truncates the name to 15
// bytes. Opening the file takes four times as long as writing it, so a caller may open it in
// advance. The caller must close the file.
func OpenProcessName() (*os.File, error) {
	// opened without package os, which would first try to add the file to its poller
	const path = "/proc/self/comm"
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return newFile(fd, path), nil
}

// SetSubreaper makes this process the new parent of every descendant with a parent that has ended.
func SetSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become child subreaper: %w", err)
	}
	return nil
}

// FileSizeLimit returns RLIMIT_FSIZE in bytes, -1 if unlimited. No file, in memory or not, may be
// made larger.
func FileSizeLimit() int64 { return resourceLimit(unix.RLIMIT_FSIZE) }

// CheckFileSize returns an error that wraps EFBIG if n bytes exceed the limit of a file's size. It
// should be called before writing, because a write beyond the limit raises a signal that ends the
// program.
func CheckFileSize(n int64) error {
	if most := FileSizeLimit(); most >= 0 && n > most {
		return fmt.Errorf("file of %d bytes exceeds the file size limit of %d (ulimit -f): %w", n, most, unix.EFBIG)
	}
	return nil
}

// OpenFileLimit returns RLIMIT_NOFILE, one more than the largest descriptor that this process
// may open, or -1 if unlimited.
func OpenFileLimit() int64 { return resourceLimit(unix.RLIMIT_NOFILE) }

// OpenFilesOf returns the number of descriptors that a process of the same user has open, and
// its RLIMIT_NOFILE, -1 if unlimited. If only the number cannot be read, it returns an error
// and the limit.
func OpenFilesOf(pid int) (open, limit int64, err error) {
	var r unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &r); err != nil {
		return 0, -1, fmt.Errorf("read limits of process %d: %w", pid, err)
	}
	if limit = int64(r.Cur); limit < 0 {
		limit = -1
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	// From Linux 6.2 on the size is the number of descriptors, and before it is 0:
	// https://git.kernel.org/torvalds/c/f1f1f2569901ec5b9d425f2e91c09a0e320768f3
	if st, err := os.Stat(dir); err == nil && st.Size() > 0 {
		return st.Size(), limit, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return 0, limit, fmt.Errorf("count descriptors of process %d: %w", pid, err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return int64(len(names)), limit, err
}

// KernelRelease returns the release of the kernel, as printed by uname -r.
func KernelRelease() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", fmt.Errorf("read kernel release: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// AddressSpaceLimit returns RLIMIT_AS, the maximum size of this process's mappings, in bytes,
// or -1 if unlimited.
func AddressSpaceLimit() int64 { return resourceLimit(unix.RLIMIT_AS) }

// AddressSpaceLeft returns the unused part of RLIMIT_AS in bytes, or -1 if there is no limit.
// Without /proc it returns the whole limit.
func AddressSpaceLeft() int64 { return addressSpaceLeft(rootFS(), AddressSpaceLimit()) }

func addressSpaceLeft(root fs.FS, limit int64) int64 {
	if limit < 0 {
		return -1
	}
	kb, err := readKey(root, procFile(os.Getpid(), "status"), "VmSize:")
	if err != nil {
		return limit // without /proc, only the limit is known
	}
	return max(0, limit-kibToBytes(kb))
}

func resourceLimit(resource int) int64 {
	var r unix.Rlimit
	if err := unix.Getrlimit(resource, &r); err != nil || int64(r.Cur) < 0 {
		return -1 // RLIM_INFINITY is all ones
	}
	return int64(r.Cur)
}
