package diagnose

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/words"
)

// A segment is a SharedMemory object of multiprocessing that processes of the job have mapped.
type segment struct {
	path    string
	holders []int // in the order of the tree
}

// describeSegments returns up to 8 notes about the SharedMemory objects of the job: their
// holders, and the processes that may have created them. Objects with the same holders share a
// note.
func (j *job) describeSegments() (notes []string) {
	type total struct {
		count int
		bytes int64
		name  string
	}
	totals := make(map[string]total)
	var order []string
	for _, s := range j.segments() {
		st, err := os.Stat(filepath.Join(j.System.Proc, itoa(j.root), "root", s.path))
		if err != nil {
			continue // its name was removed
		}
		key := fmt.Sprintf("held by %s; created by %s", j.labels(s.holders), j.creatorText(s.holders, st.ModTime()))
		t := totals[key]
		if t.count == 0 {
			order = append(order, key)
			t.name = shortName(s.path)
		}
		t.count++
		t.bytes += allocated(st)
		totals[key] = t
	}
	for _, key := range order[:min(len(order), 8)] {
		t := totals[key]
		notes = append(notes, fmt.Sprintf("%s of SharedMemory with %s in /dev/shm, such as %s: %s",
			words.Count(t.count, "name"), words.Bytes(t.bytes), t.name, key))
	}
	return notes
}

// segments returns the SharedMemory objects that processes of the job have mapped.
func (j *job) segments() (all []segment) {
	index := make(map[uint64]int)
	for _, p := range j.living() {
		for _, m := range p.Maps.Shared {
			if !isSegment(shortName(m.Path)) || strings.HasSuffix(m.Path, " (deleted)") {
				continue
			}
			i, ok := index[m.Inode]
			if !ok {
				i = len(all)
				index[m.Inode] = i
				all = append(all, segment{path: m.Path})
			}
			if !slices.Contains(all[i].holders, p.PID) {
				all[i].holders = append(all[i].holders, p.PID)
			}
		}
	}
	return all
}

// creatorText returns the processes that may have created a segment, in words: holders that were
// running at the time created, or a process that has ended.
func (j *job) creatorText(holders []int, created time.Time) string {
	up := j.System.Uptime() - time.Since(created)
	var older []int
	for _, pid := range holders {
		if time.Duration(j.last.processes[pid].Start)*tick <= up {
			older = append(older, pid)
		}
	}
	if len(older) == 0 {
		return "a process that has ended"
	}
	text := j.labels(older)
	if len(older) > 1 {
		text = "one of " + text
	}
	return text + ", or by a process that has ended"
}

// labels returns the roles and numbers of processes as text, at most six of them.
func (j *job) labels(pids []int) string {
	var list []string
	for _, pid := range pids[:min(len(pids), 6)] {
		list = append(list, j.label(pid))
	}
	if len(pids) > 6 {
		list = append(list, fmt.Sprintf("%d more", len(pids)-6))
	}
	return strings.Join(list, ", ")
}
