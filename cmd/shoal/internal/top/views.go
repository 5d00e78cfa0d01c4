package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/internal/arena/observe"
)

// A view is a table of one kind of object.
type view struct {
	name    string
	columns []column
	rows    func(s *screen) []row
	none    string // text for an empty table
}

const (
	trendTitle = "LAST SAMPLES"
	trendWidth = 12
)

// program identifies the program of a row. It is shown only if there are several.
var program = column{title: "PROGRAM", worth: 2}

var views = [...]view{
	{"processes", []column{
		{title: "PID"}, {title: "NAME", left: true, flex: true}, {title: "HOLDS", worth: 9}, {title: "CPUS", worth: 7},
		{title: "STATE", left: true, worth: 8}, {title: "ROLE", left: true, worth: 4},
		{title: trendTitle, left: true, worth: 6},
		{title: "ALONE", worth: 3}, {title: "THREADS", worth: 1}, {title: "RUNNABLE", worth: 1},
		{title: "INVOL/S", worth: 1}, program,
	}, (*screen).processRows, "no Shoal programs of this user are running"},
	{"queues", []column{
		{title: "QUEUE", left: true, flex: true}, {title: "VALUE", worth: 8}, {title: "DEPTH", worth: 9},
		{title: "ROOM", worth: 8},
		{title: "PUT/S", worth: 7}, {title: "TAKEN/S", worth: 6}, {title: "WAITING", worth: 8},
		{title: trendTitle, left: true, worth: 4}, {title: "SENDERS", worth: 3}, {title: "RECEIVERS", worth: 3},
		{title: "OF", left: true, worth: 1, flex: true}, program,
	}, (*screen).queueRows, "no queue"},
	{"locks", []column{
		{title: "LOCK", left: true, flex: true}, {title: "KIND", left: true, worth: 6},
		{title: "STATE", left: true, worth: 8},
		{title: "OWNER", left: true, worth: 9, flex: true}, {title: "WAITING", worth: 9},
		{title: "USERS", worth: 1}, program,
	}, (*screen).lockRows, "no lock"},
	{"waits", []column{
		{title: "WHO", left: true, flex: true}, {title: "WAITS FOR", left: true, worth: 9, flex: true},
		{title: "ON", left: true, worth: 9, flex: true}, program,
	}, (*screen).waitRows, "no process waits"},
	{"blocks", []column{
		{title: "BLOCK", left: true}, {title: "SIZE", worth: 9}, {title: "AGE", worth: 8},
		{title: "KIND", left: true, worth: 7},
		{title: "HOLDERS", left: true, worth: 6, flex: true},
		{title: "NAMES", left: true, worth: 5, flex: true}, program,
	}, (*screen).blockRows, "no block"},
}

func processKey(d domains.Domain, pid int) string { return fmt.Sprint(d.Address, " ", pid) }

// programOf returns a cell with the process ID of a domain's root process, or with the domain's
// address if that process is not known.
func programOf(d domains.Domain) cell {
	if len(d.Processes) == 0 {
		return cell{text: d.Address}
	}
	return numberCell(float64(d.Processes[0].PID), "%.0f")
}

func numberCell(n float64, format string) cell { return cell{fmt.Sprintf(format, n), n} }

func size(n int64) cell { return cell{words.Bytes(n), float64(n)} }

func countCell(n int) cell { return numberCell(float64(n), "%.0f") }

// nameOf returns a worker's function and rank, the process name for other processes, or "?".
func nameOf(p domains.Process) string {
	name := cmp.Or(p.Function, p.Name, "?")
	if p.Function != "" && p.Rank != nil {
		name += fmt.Sprint(" ", *p.Rank)
	}
	return name
}

// processLabel returns the name and the ID of a process in a domain, for example "train 1
// (4711)". It returns only the ID if the domain does not have the process, and "-" for 0.
func processLabel(d domains.Domain, pid int) string {
	if pid == 0 {
		return "-"
	}
	for _, p := range d.Processes {
		if p.PID == pid {
			return fmt.Sprintf("%s (%d)", nameOf(p), pid)
		}
	}
	return fmt.Sprint(pid)
}

func processLabels(d domains.Domain, pids []int) string {
	names := make([]string, len(pids))
	for i, pid := range pids {
		names[i] = processLabel(d, pid)
	}
	return strings.Join(names, ", ")
}

// each returns the rows of all shown domains. It adds the address of the domain to the keys and
// appends the program column.
func (s *screen) each(rows func(d domains.Domain) []row) (all []row) {
	for _, d := range s.shown.Domains {
		for _, r := range rows(d) {
			r.key = d.Address + " " + r.key
			r.cells = append(r.cells, programOf(d))
			all = append(all, r)
		}
	}
	return all
}

func (s *screen) processRows() []row {
	return s.each(func(d domains.Domain) (rows []row) {
		for _, p := range d.Processes {
			r := row{key: fmt.Sprint(p.PID), cells: []cell{countCell(p.PID), {text: nameOf(p)}, size(p.Holds),
				numberCell(p.CPUs, "%.2f"), {text: p.State}, {text: p.Role},
				{text: s.trendText(processKey(d, p.PID)+" holds", trendWidth)}, size(p.HoldsAlone),
				countCell(p.Threads),
				countCell(p.Runnable), numberCell(p.InvoluntaryPerSecond, "%.0f")},
				detail: func(width int) []line { return s.processDetail(d, p, width) }}
			switch {
			case isDeadlocked(d, p.PID):
				r.style = alarm
			case p.State != domains.Running:
				r.style = doubtful
			}
			rows = append(rows, r)
		}
		return rows
	})
}

// isDeadlocked reports whether a process is part of a suspected deadlock without doubt.
func isDeadlocked(d domains.Domain, pid int) bool {
	return slices.ContainsFunc(d.Deadlocks, func(c domains.Deadlock) bool {
		return c.Doubt == "" && slices.ContainsFunc(c.Waits, func(w domains.Wait) bool { return w.PID == pid })
	})
}

// blockLabel returns the bound names, or the block number if there are none.
func blockLabel(names []string, block string) string {
	if len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return block
}

func (s *screen) queueRows() []row {
	return s.each(func(d domains.Domain) (rows []row) {
		for _, q := range d.Queues {
			waiting := len(q.Senders.Waiting) + len(q.Receivers.Waiting)
			r := row{key: "queue " + q.Block, cells: []cell{{text: blockLabel(q.Names, q.Block)}, valueOf(q),
				countCell(q.Depth),
				countCell(q.Capacity),
				numberCell(q.PutsPerSecond, "%.0f"), numberCell(q.GetsPerSecond, "%.0f"), countCell(waiting),
				{text: s.trendText(d.Address+" "+q.Block+" rate", trendWidth)}, countCell(len(q.Senders.PIDs)),
				countCell(len(q.Receivers.PIDs)), {text: q.Label}},
				detail: func(width int) []line { return s.queueDetail(d, q, width) }}
			if len(q.Senders.Waiting) > 0 {
				r.style = doubtful
			}
			rows = append(rows, r)
		}
		return rows
	})
}

// valueOf returns the number stored in a Latest, or an empty cell.
func valueOf(q domains.Queue) cell {
	if q.Value == nil {
		return cell{}
	}
	return numberCell(*q.Value, "%.4g")
}

// valueKey returns the history key for the number in a Latest.
func valueKey(d domains.Domain, q domains.Queue) string { return d.Address + " " + q.Block + " value" }

// curveQueues returns the named Latests with a number, sorted by name. shoal watch draws the same
// ones.
func curveQueues(d domains.Domain) []domains.Queue {
	all := slices.DeleteFunc(slices.Clone(d.Queues), func(q domains.Queue) bool {
		return q.Value == nil || len(q.Names) == 0
	})
	slices.SortFunc(all, func(a, b domains.Queue) int { return slices.Compare(a.Names, b.Names) })
	return all
}

// stateOf describes the state of a lock.
func stateOf(l observe.LockView) string {
	switch {
	case l.Lost:
		return "lost"
	case l.Dead:
		return "owner dead"
	case l.Broken:
		return "broken"
	case l.Kind == "event" && l.Set:
		return "set"
	case l.Kind == "event":
		return "not set"
	case l.Kind == "barrier":
		return fmt.Sprintf("%d of %d came", l.Arrived, l.Limit)
	case l.Kind == "semaphore":
		return fmt.Sprintf("%d left", l.Permits)
	case l.Owner != 0:
		return "locked"
	case l.Kind == "rwmutex" && len(l.Shares) > 0:
		return words.Count(len(l.Shares), "reader")
	case l.Kind == "cond":
		return "-"
	}
	return "free"
}

func (s *screen) lockRows() []row {
	return s.each(func(d domains.Domain) (rows []row) {
		for _, l := range d.Locks {
			r := row{key: "lock " + l.Block, cells: []cell{{text: blockLabel(l.Names, l.Block)}, {text: l.Kind},
				{text: stateOf(l)},
				{text: processLabel(d, l.Owner)}, countCell(len(l.Waiting)), countCell(len(l.PIDs))},
				detail: func(int) []line { return lockDetail(d, l) }}
			if l.Dead || l.Lost || l.Broken {
				r.style = doubtful
			}
			rows = append(rows, r)
		}
		return rows
	})
}

func (s *screen) waitRows() []row {
	return s.each(func(d domains.Domain) (rows []row) {
		for _, w := range d.Waits {
			r := row{
				key:    fmt.Sprint("wait ", w.PID, w.For, w.Block),
				cells:  []cell{{text: processLabel(d, w.PID)}, {text: w.What()}, {text: waitTargets(d, w)}},
				detail: func(width int) []line { return s.detailOf(d, w.PID, width) },
			}
			if isDeadlocked(d, w.PID) {
				r.style = alarm
			}
			rows = append(rows, r)
		}
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.style, a.style) }) // circles first
		return rows
	})
}

func waitTargets(d domains.Domain, w domains.Wait) string {
	text := processLabels(d, w.On)
	if w.Others {
		text = strings.TrimPrefix(text+", others", ", ")
	}
	return cmp.Or(text, "-")
}

// ageCell formats the observed age of a block. The block may be older than the observer; the text
// then begins with ">".
func ageCell(b observe.BlockView) cell {
	text := fmt.Sprintf("%.0f s", b.Age)
	if b.Age >= 120 {
		text = fmt.Sprintf("%.0f min", b.Age/60)
	}
	if b.Age >= 7200 {
		text = fmt.Sprintf("%.0f h", b.Age/3600)
	}
	if !b.AgeKnown {
		text = "> " + text
	}
	return cell{text, b.Age}
}

func holderText(d domains.Domain, b observe.BlockView) string {
	text := processLabels(d, b.PIDs)
	if b.InTransit > 0 {
		text = strings.TrimPrefix(text+", "+words.Count(b.InTransit, "message"), ", ")
	}
	return cmp.Or(text, "-")
}

func (s *screen) blockRows() []row {
	return s.each(func(d domains.Domain) (rows []row) {
		for _, b := range d.Summary.Largest {
			rows = append(rows, row{key: "block " + b.Block, cells: []cell{{text: b.Block}, size(b.Bytes), ageCell(b),
				{text: kindOf(b)},
				{text: holderText(d, b)}, {text: strings.Join(b.Names, ", ")}},
				detail: func(int) []line { return blockDetail(d, b) }})
		}
		return rows
	})
}

func (s *screen) trendText(name string, width int) string {
	return s.history.drawTrend(name, width, s.until, s.ASCII)
}
