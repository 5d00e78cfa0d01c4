package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/internal/sys"
)

// LiveOptions configures [Live].
type LiveOptions struct {
	Options
	Every time.Duration // time between two updates; must be positive
	Count int           // number of updates; 0 means until ctx is done or the job ends
	JSON  bool          // print one object per line
	Clear bool          // clear the terminal before each update
}

// A Tick is one update of the live view.
type Tick struct {
	Time      time.Time `json:"time"`
	Seconds   float64   `json:"seconds"` // since the last update
	Processes []Process `json:"processes"`
	History   []string  `json:"history"` // by process: a character for each of the last updates
	Queues    []Queue   `json:"queues"`
}

// historyLength is the number of updates in the timeline of a process.
const historyLength = 40

// A live is the state of one call of [Live]. A live view must be cheap, so it keeps the last
// sample of each process. It reads less than an examination: no stacks, threads only of
// processes that are new, and descriptors once a minute.
type live struct {
	LiveOptions
	pid     int
	known   map[int]*procfs.Process // identity and last counters
	history map[int]string
	last    time.Time
	job     *job // its tree is read again after some updates
	updates int
	files   map[int]int // descriptors by process

	queues    []*Queue
	queueTree []int            // processes when the queues were searched
	queuesAt  int              // update of that search
	sockets   []sys.UnixSocket // of the queues
	loaders   map[int]bool     // processes, and whether they are workers of a DataLoader
	limits    map[uint64]int   // of semaphores, by inode; 0 if they are not found
}

// treeEvery is the number of updates between two searches for new processes.
const treeEvery = 5

// Live writes the states of the processes of a job to out, again and again. It returns nil when
// ctx is done, after o.Count updates, or when the process pid has ended. The error wraps
// [ErrProcess] if there is no such process at the start.
func Live(ctx context.Context, out io.Writer, o LiveOptions, pid int) error {
	o.Options = o.applyDefaults()
	o.System.Cache = procfs.NewCache()
	l := &live{LiveOptions: o, pid: pid, known: make(map[int]*procfs.Process), history: make(map[int]string),
		files: make(map[int]int), limits: make(map[uint64]int)}
	if _, err := l.observe(); err != nil { // the first update has no rates
		return err
	}
	for n := 0; o.Count == 0 || n < o.Count; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.Every):
		}
		tick, err := l.observe()
		if errors.Is(err, ErrProcess) {
			_, err = fmt.Fprintf(out, "process %d has ended\n", pid)
			return err
		}
		if err == nil {
			err = l.print(out, tick)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *live) observe() (*Tick, error) {
	if err := l.findTree(); err != nil {
		return nil, err
	}
	j := l.job
	now := time.Now()
	t := &Tick{Time: now, Seconds: now.Sub(l.last).Seconds()}
	l.last = now
	current := &sample{processes: make(map[int]*procfs.Process)}
	j.first, j.last, j.elapsed = &sample{processes: l.known}, current, time.Duration(t.Seconds*float64(time.Second))
	for _, pid := range j.tree {
		if p := l.readLight(j, pid); p != nil {
			current.processes[pid] = p
		}
	}
	j.assignRoles()
	for _, pid := range j.tree {
		p := current.processes[pid]
		if p == nil {
			continue
		}
		d := j.describe(p)
		if old := l.known[pid]; old != nil {
			d.CPU = float64(p.Ticks()-old.Ticks()) * tick.Seconds() / max(t.Seconds, 1e-3)
		}
		d.Threads, d.Files = p.ThreadCount, l.countFiles(pid)
		history := l.history[pid] + historyMark(p, d)
		l.history[pid] = history[max(0, len(history)-historyLength):]
		t.Processes = append(t.Processes, d)
		t.History = append(t.History, l.history[pid])
	}
	t.Queues = l.readQueues(current)
	l.known = current.processes
	return t, nil
}

// findTree sets l.job to the processes of the job, if they have changed or treeEvery updates
// have passed. The error wraps [ErrProcess] if process l.pid has ended.
func (l *live) findTree() error {
	changed := l.job == nil || len(l.known) != len(l.job.tree) || !l.exists(l.pid)
	if l.updates++; !changed && l.updates%treeEvery != 0 {
		return nil
	}
	if l.System.Cache != nil {
		l.System.Cache.Sweep()
	}
	o := l.Options
	o.System.Cache = nil
	j, err := newJob(o, l.pid)
	if errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%w: there is no process %d", ErrProcess, l.pid)
	}
	if err != nil {
		return err
	}
	j.Options, l.job = l.Options, j
	return nil
}

// readLight reads the counters of a process and the wait of its main thread. It returns nil if
// the process has ended.
func (l *live) readLight(j *job, pid int) *procfs.Process {
	st, err := j.System.ReadStat(pid)
	if err != nil {
		return nil
	}
	p := &procfs.Process{Stat: st}
	if old := l.known[pid]; old != nil && old.Start == st.Start {
		p.Command, p.Exe, p.Groups, p.Env, p.Maps = old.Command, old.Exe, old.Groups, old.Env, old.Maps
	} else {
		j.System.ReadIdentity(p)
		j.System.ReadMaps(p)
	}
	j.System.ReadIO(p)
	p.Threads = []procfs.Thread{j.System.ReadThread(p)}
	return p
}

// countFiles returns the number of descriptors, which Linux 6.2 and later has as the size of the
// directory.
//
// https://github.com/torvalds/linux/commit/f1f1f2569901ec5b9d425f2e91c09a0e320768f3
func (l *live) countFiles(pid int) int {
	if n, ok := l.files[pid]; ok && l.updates%treeEvery != 0 {
		return n
	}
	st, err := os.Stat(filepath.Join(l.System.Proc, itoa(pid), "fd"))
	if err != nil {
		return 0
	}
	l.files[pid] = int(st.Size())
	return l.files[pid]
}

// historyMark returns the character of an update: the state of a process that is stopped, has
// ended or waits for a device, # for a full CPU, the CPU use in tenths, l for a wait for a lock,
// or a dot.
func historyMark(p *procfs.Process, d Process) string {
	switch p.State {
	case 'D', 'T', 't', 'Z':
		return string(p.State)
	}
	switch {
	case d.CPU >= 0.95:
		return "#"
	case d.CPU >= 0.05:
		return itoa(int(d.CPU*10 + 0.5))
	}
	if len(p.Threads) > 0 && kindOf(p.Threads[0]) == waitFutex {
		return "l"
	}
	return "."
}

func (l *live) print(out io.Writer, t *Tick) error {
	if l.JSON {
		return json.NewEncoder(out).Encode(t)
	}
	if l.Clear {
		fmt.Fprint(out, "\x1b[H\x1b[2J")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROCESS\tROLE\tSTATE\tCPU\tREAD/s\tFAULTS/s\tMEMORY\tFILES\tTIMELINE\tWAITS FOR")
	for i, p := range t.Processes {
		words.Fprintf(w, "%s%d\t%s\t%s\t%.2f\t%s\t%.0f\t%s\t%d\t%s\t%s\n", strings.Repeat("  ", p.Depth), p.PID,
			p.title(), p.State,
			p.CPU, words.Bytes(int64(p.Read)), p.Faults, words.Bytes(p.Memory), p.Files, t.History[i], p.Wait)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := t.printQueues(out); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "timeline: # a full CPU, 1 to 9 tenths of one, l waits for a lock, D for a "+
		"device, T stopped, Z ended, . idle")
	if len(t.Queues) > 0 && err == nil {
		_, err = fmt.Fprintln(out, "queues: # full, 1 to 9 tenths, or items if there is no limit, + more, . empty, ? "+
			"unknown; WAITING are processes with a main thread that waits for it")
	}
	return err
}
