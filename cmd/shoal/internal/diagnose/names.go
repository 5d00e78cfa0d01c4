package diagnose

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

// tensorName matches the names that PyTorch gives to shared memory: torch_PID_RANDOM_NUMBER.
//
// https://github.com/pytorch/pytorch/blob/v2.4.0/aten/src/ATen/StorageUtils.cpp
var tensorName = regexp.MustCompile(`^torch_(\d+)_\d+_\d+$`)

// unownedName matches names of shared memory that do not record a process: semaphores of
// multiprocessing, and SharedMemory.
var unownedName = regexp.MustCompile(`^(?:sem\.(?:mp-)?\w+|psm_\w+|wnsm_\w+)$`)

// creatorOf returns the process that a name records, or 0.
func creatorOf(name string) int {
	if m := tensorName.FindStringSubmatch(name); m != nil {
		pid, _ := strconv.Atoi(m[1])
		return pid
	}
	return 0
}

// A Leak is a name in shared memory that no living process uses.
type Leak struct {
	Path    string  `json:"path"`
	Bytes   int64   `json:"bytes"`
	Creator int     `json:"creator"` // 0 if the name does not tell
	Tracker int     `json:"tracker"` // living resource tracker that will remove it, or 0
	Age     float64 `json:"age"`     // seconds since the file was changed
	Proven  bool    `json:"proven"`  // the creator is dead, so the file may be removed
	Reason  string  `json:"reason"`

	inode uint64
}

// minLeakAge protects files that a process has created but not yet mapped or sent.
const minLeakAge = 10 * time.Second

// FindLeaks lists the names of PyTorch and of multiprocessing in the directory dir that no visible
// process has mapped or open. A leak is proven only if the name records its creator, the creator is
// dead, all processes are visible, and the file is old enough. The creator's number must belong to
// this process's PID namespace: if other namespaces have processes that use the directory, they are
// visible only from the outermost one, so without privileges nothing is proven.
func FindLeaks(s procfs.System, dir string) ([]Leak, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list shared memory: %w", err)
	}
	used, hidden, err := usedInodes(s)
	if err != nil {
		return nil, err
	}
	inner, nested := isInnerNamespace(s), nestedPIDs(s)
	tracked, unread := registeredNames(s)
	var leaks []Leak
	for _, e := range entries {
		creator := creatorOf(e.Name())
		if creator == 0 && !unownedName.MatchString(e.Name()) {
			continue
		}
		st, err := os.Lstat(filepath.Join(dir, e.Name()))
		inode := inodeOf(st)
		if err != nil || !st.Mode().IsRegular() || used[inode] {
			continue
		}
		age := time.Since(st.ModTime())
		l := Leak{Path: filepath.Join(dir, e.Name()), Bytes: allocated(st), Creator: creator, Age: age.Seconds(),
			Tracker: tracked[e.Name()], inode: inode}
		switch _, err := s.ReadStat(max(creator, 1)); {
		case l.Tracker != 0:
			l.Reason = fmt.Sprintf("no process uses it; the resource tracker %d will remove it when its job ends",
				l.Tracker)
		case creator == 0 && unread > 0:
			l.Reason = "no process uses it, but its name does not record its creator"
		case creator == 0:
			l.Reason = "no process uses it, and no living resource tracker has registered it: its creator is " +
				"probably dead"
		case err == nil, nested[creator]:
			l.Reason = fmt.Sprintf("process %d, which created it, is alive", creator)
		case hidden > 0:
			l.Reason = fmt.Sprintf("process %d, which created it, is dead, but %d processes may not be examined",
				creator, hidden)
		case inner:
			l.Reason = "processes of other PID namespaces may use it"
		case age < minLeakAge:
			l.Reason = fmt.Sprintf("it is only %.0f s old", age.Seconds())
		default:
			l.Proven = true
			l.Reason = fmt.Sprintf("process %d, which created it, is dead, and no process uses it", creator)
		}
		leaks = append(leaks, l)
	}
	return leaks, nil
}

// trackedName matches names that a resource tracker has in its memory, as POSIX writes them.
var trackedName = regexp.MustCompile(`/(psm_\w+|wnsm_\w+|mp-\w+)`)

// maxTracker limits the memory of a resource tracker that is searched.
const maxTracker = 64 << 20

// registeredNames returns the files in /dev/shm that living resource trackers have registered,
// and the number of trackers that may not be read. names maps the name of a file to the process
// of its tracker.
//
// https://github.com/python/cpython/blob/v3.11.7/Lib/multiprocessing/resource_tracker.py#L175-L240
func registeredNames(s procfs.System) (names map[string]int, unread int) {
	names = make(map[string]int)
	o := Options{System: s}
	pids, _ := s.PIDs()
	for _, pid := range pids {
		if !strings.Contains(o.commandOf(pid), "multiprocessing.resource_tracker") {
			continue
		}
		p := &procfs.Process{Stat: procfs.Stat{PID: pid}}
		s.ReadMaps(p)
		found, err := pystack.FindText(s, p, trackedName, maxTracker)
		if err != nil {
			unread++
		}
		for _, m := range found {
			name := m[1]
			if strings.HasPrefix(name, "mp-") {
				name = "sem." + name
			}
			names[name] = pid
		}
	}
	return names, unread
}

// isSegment reports whether a name belongs to a SharedMemory object of multiprocessing.
func isSegment(name string) bool {
	return strings.HasPrefix(name, "psm_") || strings.HasPrefix(name, "wnsm_")
}

// isInnerNamespace reports whether this process is in a PID namespace inside of another one, or
// whether that is unknown. The kernel gives the initial namespace this inode.
//
// https://github.com/torvalds/linux/blob/v6.12/include/linux/proc_ns.h#L39-L49
func isInnerNamespace(s procfs.System) bool {
	link, err := os.Readlink(filepath.Join(s.Proc, "self/ns/pid"))
	return err != nil || link != "pid:[4026531836]"
}

// nestedPIDs returns the numbers that processes have in this PID namespace and in those inside
// of it.
func nestedPIDs(s procfs.System) map[int]bool {
	nested := make(map[int]bool)
	pids, _ := s.PIDs()
	for _, pid := range pids {
		text, _ := os.ReadFile(filepath.Join(s.Proc, itoa(pid), "status"))
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
				for _, f := range strings.Fields(rest) {
					n, _ := strconv.Atoi(f)
					nested[n] = true
				}
			}
		}
	}
	return nested
}

// usedInodes returns the inodes of files in shared memory that processes have mapped or open, and
// the number of processes that may not be examined.
func usedInodes(s procfs.System) (used map[uint64]bool, hidden int, err error) {
	pids, err := s.PIDs()
	if err != nil {
		return nil, 0, fmt.Errorf("list processes: %w", err)
	}
	used = make(map[uint64]bool)
	for _, pid := range pids {
		p := &procfs.Process{Stat: procfs.Stat{PID: pid}}
		s.ReadMaps(p)
		s.ReadFiles(p)
		if len(p.Denied) > 0 {
			hidden++
		}
		for _, m := range p.Maps.Shared {
			used[m.Inode] = true
		}
		for _, f := range p.Files {
			if name := shortName(f.Target); creatorOf(name) == 0 && !unownedName.MatchString(name) {
				continue
			}
			if st, err := os.Stat(filepath.Join(s.Proc, itoa(pid), "fd", itoa(f.FD))); err == nil {
				used[inodeOf(st)] = true
			}
		}
	}
	return used, hidden, nil
}

// Clean lists the leaks of dir on out. If remove is set, it also removes those that are proven,
// after it has examined each again.
func Clean(out io.Writer, s procfs.System, dir string, remove bool) error {
	leaks, err := FindLeaks(s, dir)
	if err != nil {
		return err
	}
	slices.SortFunc(leaks, func(a, b Leak) int { return strings.Compare(a.Path, b.Path) })
	var sum int64
	proven := 0
	for _, l := range leaks {
		mark := "keep  "
		if l.Proven {
			mark, sum = "remove", sum+l.Bytes
			proven++
		}
		words.Fprintf(out, "%s  %s  %s, %.0f s old: %s\n", mark, l.Path, words.Bytes(l.Bytes), l.Age, l.Reason)
	}
	if proven == 0 {
		_, err = fmt.Fprintf(out, "nothing in %s provably belongs to dead processes\n", dir)
		return err
	}
	if !remove {
		_, err = fmt.Fprintf(out, "%s with %s would be removed: run again with --yes\n", words.Count(proven, "file"),
			words.Bytes(sum))
		return err
	}
	return removeLeaks(out, s, dir, leaks)
}

// removeLeaks removes the proven leaks that are still leaks in dir, and writes their number to
// out. It stops at the first file that it cannot remove.
func removeLeaks(out io.Writer, s procfs.System, dir string, leaks []Leak) error {
	again, err := FindLeaks(s, dir)
	if err != nil {
		return err
	}
	removed := 0
	for _, l := range leaks {
		same := slices.ContainsFunc(again, func(a Leak) bool {
			return a.Proven && a.Path == l.Path && a.inode == l.inode
		})
		if !l.Proven || !same {
			continue
		}
		if err := os.Remove(l.Path); err != nil {
			return fmt.Errorf("remove leaked shared memory: %w", err)
		}
		removed++
	}
	_, err = fmt.Fprintf(out, "removed %s\n", words.Count(removed, "file"))
	return err
}
