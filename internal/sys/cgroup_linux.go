package sys

import (
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A cgroup is one directory of a control group hierarchy, as seen by this process.
type cgroup struct {
	root    fs.FS
	dir     string // in root, without a leading slash
	unified bool   // version 2
}

// findCgroups returns the control groups of this process that govern controller ("memory", "cpu"):
// in every mounted hierarchy, the process's own group first, then each ancestor up to the mount
// point. Groups above the mount point are not visible. A machine without control groups yields
// none.
func findCgroups(root fs.FS, controller string) ([]cgroup, error) {
	return cgroupsOf(root, "proc/self/cgroup", controller)
}

// cgroupsOf is findCgroups for the process with the memberships in the file members, such as
// proc/PID/cgroup. If a file is missing, it returns no groups and no error.
func cgroupsOf(root fs.FS, members, controller string) ([]cgroup, error) {
	own, err := fs.ReadFile(root, members)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return nil, ignoreMissing(err)
	}
	paths := parseMemberships(own, controller)
	var all []cgroup
	for _, m := range parseCgroupMounts(mounts, controller) {
		member, ok := paths[m.unified]
		if !ok {
			continue
		}
		for _, dir := range ancestorDirs(m, member) {
			if info, err := fs.Stat(root, dir); err == nil && info.IsDir() {
				all = append(all, cgroup{root, dir, m.unified})
			}
		}
	}
	return all, nil
}

// parseMemberships parses /proc/self/cgroup, which has lines of hierarchy:controllers:path. It
// returns the path in the unified hierarchy for true, and the path in the controller's own
// hierarchy for false. A hierarchy that is not in the file has no entry.
func parseMemberships(data []byte, controller string) map[bool]string {
	paths := make(map[bool]string)
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(parts) < 3:
		case parts[0] == "0" && parts[1] == "":
			paths[true] = parts[2]
		case slices.Contains(strings.Split(parts[1], ","), controller):
			paths[false] = parts[2]
		}
	}
	return paths
}

// A cgroupMount is a mounted hierarchy, a line of /proc/self/mountinfo. Its group top is
// mounted at the directory point.
type cgroupMount struct {
	top, point string
	unified    bool
}

// parseCgroupMounts returns the mounts in data, the contents of /proc/self/mountinfo, that may
// govern controller: version 2, and the controller's own hierarchy of version 1. A line is: id
// parent device top point options fields… - type source options. In version 1 the last options
// name the controllers.
func parseCgroupMounts(data []byte, controller string) []cgroupMount {
	var all []cgroupMount
	for line := range strings.Lines(string(data)) {
		before, after, _ := strings.Cut(line, " - ")
		mount, super := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(super) < 3 {
			continue
		}
		m := cgroupMount{top: unescape(mount[3]), point: unescape(mount[4]), unified: super[0] == "cgroup2"}
		if m.unified || super[0] == "cgroup" && slices.Contains(strings.Split(super[2], ","), controller) {
			all = append(all, m)
		}
	}
	return all
}

// unescape undoes the octal escapes of blanks, tabs, newlines and backslashes in mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// ancestorDirs returns the directories, in the mounted hierarchy m, of the group member and its
// ancestors up to the mount point, innermost first. If member lies outside of the mounted part,
// as in a container with the host's view in /proc, ancestorDirs returns only the mount point.
func ancestorDirs(m cgroupMount, member string) []string {
	point := strings.Trim(path.Clean(m.point), "/")
	top := path.Clean("/" + m.top)
	member = path.Clean("/" + member)
	below, ok := strings.CutPrefix(member, strings.TrimSuffix(top, "/"))
	if !ok || below != "" && below[0] != '/' {
		below = ""
	}
	below = strings.Trim(below, "/")
	var dirs []string
	for below != "" && below != "." {
		dirs = append(dirs, path.Join(point, below))
		below = path.Dir(below)
	}
	return append(dirs, path.Join(point, "."))
}

// readNumber reads a file of the group's directory that contains one number. ok is false if the
// file cannot be read, or contains "max" or -1, which mean no limit.
func (g cgroup) readNumber(file string) (n int64, ok bool) {
	data, err := fs.ReadFile(g.root, path.Join(g.dir, file))
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil && n >= 0
}

// isFrozen reports whether the processes in g are suspended, or being suspended, until a
// process thaws them. A group that cannot be read counts as not frozen.
func (g cgroup) isFrozen() bool {
	if g.unified {
		data, err := fs.ReadFile(g.root, path.Join(g.dir, "cgroup.events"))
		return err == nil && strings.Contains(string(data), "frozen 1")
	}
	data, err := fs.ReadFile(g.root, path.Join(g.dir, "freezer.state"))
	return err == nil && strings.HasPrefix(string(data), "FR") // FREEZING, FROZEN
}

// isShared reports whether g contains a process other than self, the number of this process,
// and its descendants, or a group other than inner, the directory of our own group in g. inner
// is "" if g is our own group. A group that cannot be read counts as shared.
func (g cgroup) isShared(self int, inner string) bool {
	entries, err := fs.ReadDir(g.root, g.dir)
	if err != nil {
		return true
	}
	for _, e := range entries {
		if e.IsDir() && path.Join(g.dir, e.Name()) != inner {
			return true
		}
	}
	procs, err := fs.ReadFile(g.root, path.Join(g.dir, "cgroup.procs"))
	if err != nil {
		return true
	}
	for _, p := range strings.Fields(string(procs)) {
		pid, err := strconv.Atoi(p)
		if err != nil || !isDescendant(g.root, pid, self) {
			return true
		}
	}
	return false
}

// isDescendant reports whether pid is self or a descendant of self. A process that has ended
// meanwhile counts as a descendant.
func isDescendant(root fs.FS, pid, self int) bool {
	// deeper than any tree of processes; the numbers may change while we read
	for range 1 << 10 {
		if pid == self {
			return true
		}
		if pid <= 1 {
			return false
		}
		parent, err := parentOf(root, pid)
		if err != nil {
			return isProcessGone(err)
		}
		pid = parent
	}
	return false
}

// readKeys parses the file name of root, with lines that begin with a name and a number, such
// as proc/meminfo and memory.stat, and returns the numbers by name. Names keep their colons.
// Lines of another form are skipped, and so are negative numbers, which no counter has.
func readKeys(root fs.FS, name string) (map[string]int64, error) {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	return maps.Collect(keysOf(data)), nil
}

// keysOf yields the names and numbers in data, the contents of a file as read by readKeys.
func keysOf(data []byte) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for line := range strings.Lines(string(data)) {
			name := ""
			for f := range strings.FieldsSeq(line) {
				if name == "" {
					name = f
					continue
				}
				// the second word of most lines in a process's status is not a number
				if f[0] < '0' || f[0] > '9' {
					break
				}
				if n, err := strconv.ParseInt(f, 10, 64); err == nil && !yield(name, n) {
					return
				}
				break
			}
		}
	}
}

// readKey returns the number after key in a file as read by readKeys. It returns an error that
// wraps [fs.ErrNotExist] if there is no such file or key.
func readKey(root fs.FS, name, key string) (int64, error) {
	keys, err := readKeys(root, name)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", key, err)
	}
	n, ok := keys[key]
	if !ok {
		return 0, fmt.Errorf("read %s: not in /%s: %w", key, name, fs.ErrNotExist)
	}
	return n, nil
}

// kibToBytes converts KiB to bytes. If the result would overflow, it returns the largest
// multiple of 1024 that an int64 can hold.
func kibToBytes(n int64) int64 { return min(n, math.MaxInt64>>10) << 10 }

func ignoreMissing(err error) error {
	if isProcessGone(err) {
		return nil
	}
	return err
}
