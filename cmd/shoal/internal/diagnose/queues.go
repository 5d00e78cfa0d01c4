package diagnose

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Queue is a queue or a pipe between the processes of a job. A multiprocessing.Queue has a row
// for its semaphore, which counts items, and one for its pipe, which counts bytes. A SimpleQueue or
// a Pipe has the second one only.
type Queue struct {
	Kind    string `json:"kind"`    // see the constants below
	Name    string `json:"name"`    // of the semaphore, the pipe or the socket
	Owner   int    `json:"owner"`   // oldest process that has it
	Use     string `json:"use"`     // of a DataLoader's queue; "" if it is not known
	Items   int    `json:"items"`   // put and not yet received; -1 if it is not known
	Limit   int    `json:"limit"`   // of items; 0 if there is none
	Bytes   int    `json:"bytes"`   // written and not yet read; -1 if it is not known
	Unknown string `json:"unknown"` // why a number is not known
	Waiting []int  `json:"waiting"` // processes with a main thread that waits for data or space
	History string `json:"history"` // a character for each of the last updates

	inode  uint64 // of the semaphore, or of the socket
	addr   uint64 // of the semaphore in the owner
	path   string // of the reading end of the pipe
	second uint32 // inode of the other socket
}

// Kinds of a [Queue].
const (
	kindQueue  = "queue"
	kindPipe   = "pipe"
	kindSocket = "duplex pipe"
	kindNone   = "queues"
)

// queueEvery is the number of updates between two searches for queues, unless processes started or
// ended. A search reads the descriptors and mappings of all processes.
const queueEvery = 60

// pipeCapacity is the default capacity of a pipe.
const pipeCapacity = 64 << 10

// manyItems is the least value of the semaphore of a queue without a limit: it begins with
// SEM_VALUE_MAX, and each item takes one.
const manyItems = unbounded / 2

// findQueues sets l.queues to the queues of the job, with their histories, if processes have
// started or ended or queueEvery updates have passed.
func (l *live) findQueues(current *sample) {
	if slices.Equal(l.queueTree, l.job.tree) && l.updates-l.queuesAt < queueEvery {
		return
	}
	l.queueTree, l.queuesAt, l.loaders = slices.Clone(l.job.tree), l.updates, make(map[int]bool)
	old := make(map[string]string)
	for _, q := range l.queues {
		old[q.Kind+q.Name] = q.History
	}
	l.queues = nil
	seen := make(map[string]bool)
	files := make(map[int][]procfs.File)
	for _, pid := range l.job.tree {
		p := current.processes[pid]
		if p == nil || len(p.Maps.Python) == 0 || p.State == 'Z' {
			continue
		}
		owner := *p
		owner.Files = nil
		l.System.ReadFiles(&owner)
		files[pid] = owner.Files
		if len(l.job.created(pid)) == 0 {
			continue
		}
		l.System.ReadMaps(&owner)
		p.Maps = owner.Maps
		for _, q := range append(l.semaphoreQueues(&owner, seen), l.pipeQueues(&owner)...) {
			if key := q.Kind + q.Name; !seen[key] {
				seen[key] = true
				q.History = old[key]
				l.queues = append(l.queues, q)
			}
		}
	}
	l.queues = append(l.queues, l.socketQueues(files, old)...)
	l.nameLoaderQueues(current)
}

// semaphoreQueues returns the instances of multiprocessing.Queue that a process has, without
// those in seen. If the semaphores may not be read, the only result has the kind kindNone and
// the reason. The keys of seen are the kinds and names of queues.
func (l *live) semaphoreQueues(p *procfs.Process, seen map[string]bool) (all []*Queue) {
	var rest []procfs.Mapping
	for _, m := range p.Maps.Shared {
		if !m.Semaphore() || seen[kindQueue+semaphoreName(m)] {
			continue
		}
		st, err := pystack.ReadSemaphore(l.System, p.PID, m.Start)
		switch {
		case err != nil:
			return []*Queue{{Kind: kindNone, Name: "of process " + itoa(p.PID), Owner: p.PID, Items: -1, Bytes: -1,
				Unknown: "the semaphores may not be read: " + err.Error()}}
		case st.Value > manyItems:
			all = append(all, &Queue{Kind: kindQueue, Name: semaphoreName(m), Owner: p.PID, inode: m.Inode,
				addr: m.Start})
		default:
			rest = append(rest, m)
		}
	}
	l.readLimits(p, rest)
	for _, m := range rest {
		if n := l.limits[m.Inode]; n > 1 && n < unbounded && l.limits[m.Inode-1] == 1 && l.limits[m.Inode-2] == 1 {
			all = append(all, &Queue{Kind: kindQueue, Name: semaphoreName(m), Owner: p.PID, Limit: n, inode: m.Inode,
				addr: m.Start})
		}
	}
	return all
}

// readLimits stores the limits of the semaphores of a process in l.limits. It searches the
// memory of the process only if one of them may belong to a queue and is not known yet. A Queue
// creates two locks and its semaphore one after another.
func (l *live) readLimits(p *procfs.Process, all []procfs.Mapping) {
	has := make(map[uint64]bool)
	for _, m := range all {
		has[m.Inode] = true
	}
	unknown := slices.ContainsFunc(all, func(m procfs.Mapping) bool {
		_, known := l.limits[m.Inode]
		return !known && has[m.Inode-1] && has[m.Inode-2]
	})
	if !unknown {
		return
	}
	locks, _ := pystack.FindSemLocks(l.System, p, 0, 0) // empty without permission
	for _, m := range all {
		l.limits[m.Inode] = locks[m.Start].Max
	}
}

// semaphoreName returns a name of a semaphore. multiprocessing removes the name of the file, so the
// inode is a part of it.
func semaphoreName(m procfs.Mapping) string { return fmt.Sprintf("semaphore:[%d]", m.Inode) }

// pipeQueues returns the pipes with both ends in one process. The creator of a queue has both.
func (l *live) pipeQueues(p *procfs.Process) (all []*Queue) {
	writable := make(map[string]bool)
	for _, f := range p.Files {
		if f.Pipe() != "" && f.Mode() == procfs.WriteOnly {
			writable[f.Pipe()] = true
		}
	}
	for _, f := range p.Files {
		if name := f.Pipe(); name != "" && f.Mode() == procfs.ReadOnly && writable[name] {
			all = append(all, &Queue{Kind: kindPipe, Name: name, Owner: p.PID, Items: -1,
				path: filepath.Join(l.System.Proc, itoa(p.PID), "fd", itoa(f.FD))})
		}
	}
	return all
}

// socketQueues returns the pairs of Unix sockets that connect two processes of the job, and sets
// l.sockets to them. files holds the open files by process, and old the histories by kind and
// name.
func (l *live) socketQueues(files map[int][]procfs.File, old map[string]string) (all []*Queue) {
	holders := make(map[uint32][]int)
	for _, pid := range l.job.tree {
		for _, f := range files[pid] {
			var inode uint32
			if _, err := fmt.Sscan(f.Socket(), &inode); err == nil && !slices.Contains(holders[inode], pid) {
				holders[inode] = append(holders[inode], pid)
			}
		}
	}
	l.sockets = nil
	if len(holders) < 2 {
		return nil
	}
	sockets, _ := sys.UnixSockets() // without them there are no rows
	for _, s := range sockets {
		a, b := holders[s.Inode], holders[s.Peer]
		apart := len(a) > 0 && len(b) > 0 && (len(a) > 1 || len(b) > 1 || a[0] != b[0])
		if !apart || s.Inode > s.Peer {
			continue
		}
		q := &Queue{Kind: kindSocket, Name: fmt.Sprintf("socket:[%d]", s.Inode), Owner: min(a[0], b[0]), Items: -1,
			inode: uint64(s.Inode), second: s.Peer}
		q.History = old[q.Kind+q.Name]
		all = append(all, q)
		l.sockets = append(l.sockets, s)
	}
	return all
}

// nameLoaderQueues sets the Use of the queues of a DataLoader. A DataLoader creates the queue of
// results, and then, for each worker, the queue of its indices and the worker. So the oldest
// worker that has mapped a queue is its worker, and the first worker has two.
//
// https://github.com/pytorch/pytorch/blob/v2.4.0/torch/utils/data/dataloader.py#L1011-L1037
func (l *live) nameLoaderQueues(current *sample) {
	byWorker := make(map[int][]*Queue)
	var first *procfs.Process
	for _, q := range l.queues {
		if q.Kind != kindQueue || q.Limit != 0 {
			continue
		}
		var oldest *procfs.Process
		for _, pid := range l.job.tree {
			p := current.processes[pid]
			if p == nil || l.job.creator(pid) != q.Owner || !l.isLoader(p) {
				continue
			}
			if _, ok := semaphoreMapping(p, q.inode); ok && (oldest == nil || p.Start < oldest.Start) {
				oldest = p
			}
		}
		if oldest != nil {
			byWorker[oldest.PID] = append(byWorker[oldest.PID], q)
			if first == nil || oldest.Start < first.Start {
				first = oldest
			}
		}
	}
	for pid, list := range byWorker {
		want := 1
		if pid == first.PID {
			want = 2
		}
		if len(list) != want {
			return // it is not this layout
		}
	}
	for pid, list := range byWorker {
		slices.SortFunc(list, func(a, b *Queue) int { return cmp.Compare(a.inode, b.inode) })
		list[len(list)-1].Use = fmt.Sprintf("indices for worker %d", pid)
		if len(list) == 2 {
			list[0].Use = "batches of all workers"
		}
	}
}

// isLoader reports whether a process is a worker of a DataLoader. PyTorch names these processes
// since 2.6; before, only the stack tells, which is read once.
func (l *live) isLoader(p *procfs.Process) bool {
	if p.Name == "pt_data_worker" {
		return true
	}
	is, known := l.loaders[p.PID]
	if !known {
		stacks, _ := pystack.Read(l.System, p) // empty without permission
		is = hasFunction(stacks, "_worker_loop", "_utils/worker.py")
		l.loaders[p.PID] = is
	}
	return is
}

// readQueues returns all queues with their depths and waiting processes. The roles must have
// been assigned.
func (l *live) readQueues(current *sample) (all []Queue) {
	l.findQueues(current)
	waiting := l.waitingProcesses(current)
	unread := make(map[uint32]uint32)
	if len(l.sockets) > 0 {
		sockets, _ := sys.UnixSockets()
		for _, s := range sockets {
			unread[s.Inode] = s.Unread + 1 // 0 if it has gone
		}
	}
	for _, q := range l.queues {
		l.readQueue(q, unread)
		q.Waiting = append(waiting[q.Name], waiting[fmt.Sprintf("socket:[%d]", q.second)]...)
		slices.Sort(q.Waiting)
		history := q.History + q.mark()
		q.History = history[max(0, len(history)-historyLength):]
		all = append(all, *q)
	}
	return all
}

func (l *live) readQueue(q *Queue, unread map[uint32]uint32) {
	switch q.Kind {
	case kindQueue:
		q.Bytes = -1
		st, err := pystack.ReadSemaphore(l.System, q.Owner, q.addr)
		if err != nil {
			q.Items, q.Unknown = -1, "the semaphore may not be read: "+err.Error()
			return
		}
		q.Items, q.Unknown = cmp.Or(q.Limit, unbounded)-st.Value, ""
	case kindPipe:
		q.Unknown = "a pipe has no count of items"
		n, err := sys.PipeBytes(q.path)
		if q.Bytes = n; err != nil {
			q.Bytes, q.Unknown = -1, err.Error()
		}
	case kindSocket:
		a, b := unread[uint32(q.inode)], unread[q.second]
		q.Bytes, q.Unknown = int(a+b)-2, "a socket has no count of items"
		if a == 0 || b == 0 {
			q.Bytes, q.Unknown = -1, "the socket is closed"
		}
	}
}

// waitingProcesses returns the processes with a main thread that waits for a pipe, a socket or
// the semaphore of a queue. The keys are the names of these objects, as in [Queue].
func (l *live) waitingProcesses(current *sample) map[string][]int {
	waiting := make(map[string][]int)
	if len(l.queues) == 0 {
		return waiting
	}
	for _, pid := range l.job.tree {
		p := current.processes[pid]
		if p == nil || len(p.Threads) == 0 {
			continue
		}
		t := p.Threads[0]
		if m, ok := semaphoreOf(p, t); ok {
			waiting[semaphoreName(m)] = append(waiting[semaphoreName(m)], pid)
			continue
		}
		if fd, ok := l.waitFD(p, t); ok {
			name, err := os.Readlink(filepath.Join(l.System.Proc, itoa(pid), "fd", itoa(fd)))
			if err == nil {
				waiting[name] = append(waiting[name], pid)
			}
		}
	}
	return waiting
}

// waitFD returns the descriptor that a thread waits for: the argument of a read or a write, or
// the only one of a poll. ok is false for other waits, and if the call may not be read.
func (l *live) waitFD(p *procfs.Process, t procfs.Thread) (fd int, ok bool) {
	if t.Call.Number < 0 {
		return 0, false
	}
	switch kindOf(t) {
	case waitRead, waitWrite:
		return int(t.Call.Args[0]), true
	case waitPoll:
		if t.Call.Args[1] != 1 { // it has another meaning for other calls than poll
			return 0, false
		}
		b, err := pystack.ReadMemory(l.System, p.PID, t.Call.Args[0], 8) // struct pollfd
		if err != nil {
			return 0, false
		}
		return int(int32(binary.LittleEndian.Uint32(b))), true
	}
	return 0, false
}

// mark returns the character of an update: ? if the depth is not known, . for an empty queue, #
// for a full one, and tenths of the limit for others. Without a limit it is the number of items,
// or + for more than 9.
func (q *Queue) mark() string {
	n, limit := q.Items, q.Limit
	if q.Kind == kindPipe || q.Kind == kindSocket {
		n, limit = q.Bytes, pipeCapacity
	}
	switch {
	case n < 0:
		return "?"
	case n == 0:
		return "."
	case limit == 0 && n > 9:
		return "+"
	case limit == 0:
		return itoa(n)
	case n >= limit:
		return "#"
	}
	return itoa(max(1, n*10/limit))
}

// depth returns the depth of a queue in words.
func (q *Queue) depth() string {
	switch {
	case q.Items >= 0 && q.Limit > 0:
		return fmt.Sprintf("%d of %d", q.Items, q.Limit)
	case q.Items >= 0:
		return itoa(q.Items)
	case q.Bytes >= 0:
		return words.Bytes(int64(q.Bytes))
	}
	return "unknown: " + q.Unknown
}

// printQueues writes the table of queues.
func (t *Tick) printQueues(out io.Writer) error {
	if len(t.Queues) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nQUEUE\tOF\tDEPTH\tTIMELINE\tUSE\tWAITING")
	for _, q := range t.Queues {
		list := strings.Trim(fmt.Sprint(q.Waiting), "[]")
		words.Fprintf(w, "%s %s\t%d\t%s\t%s\t%s\t%s\n", q.Kind, q.Name, q.Owner, q.depth(), q.History, q.Use, list)
	}
	return w.Flush()
}
