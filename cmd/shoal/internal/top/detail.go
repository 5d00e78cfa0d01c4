package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/internal/arena/observe"
)

// factLine returns a line of a detail view: a name and a formatted value.
func factLine(name, format string, values ...any) line {
	return line{{fmt.Sprintf("%-12s", name), faint}, {fmt.Sprintf(format, values...), plain}}
}

func (s *screen) detailOf(d domains.Domain, pid, width int) []line {
	for _, p := range d.Processes {
		if p.PID == pid {
			return s.processDetail(d, p, width)
		}
	}
	return []line{styledLine(plain, "process ", fmt.Sprint(pid), " is not a process of the program")}
}

// processDetail returns the detail view of a process: its state, its memory and CPU usage over
// time, its waits and the objects it uses.
func (s *screen) processDetail(d domains.Domain, p domains.Process, width int) []line {
	all := []line{styledLine(strong, "process ", processLabel(d, p.PID)), nil,
		factLine("state", "%s, %s of program %s", p.State, p.Role, programOf(d).text),
		factLine("parent", "%s", processLabel(d, p.Parent))}
	if p.Function != "" {
		all = append(all, factLine("function", "%s", p.Function))
	}
	budget := "all CPUs"
	if p.GOMAXPROCS > 0 {
		budget = fmt.Sprintf("GOMAXPROCS %d", p.GOMAXPROCS)
	}
	chart := max(trendWidth, min(span, width-12-24))
	key := processKey(d, p.PID)
	all = append(all,
		factLine("threads", "%d, %d of them runnable, %s, %.0f involuntary switches/s", p.Threads, p.Runnable, budget,
			p.InvoluntaryPerSecond),
		factLine("holds", "%s in %s, %s of it exclusively", words.Bytes(p.Holds), words.Count(p.HoldsBlocks, "block"),
			words.Bytes(p.HoldsAlone)),
		line{{fmt.Sprintf("%-12s", ""), faint}, {s.trendText(key+" holds", chart), good}},
		factLine("CPUs", "%.2f", p.CPUs),
		line{{fmt.Sprintf("%-12s", ""), faint}, {s.trendText(key+" CPUs", chart), good}})
	all = append(all, waitsOf(d, p.PID)...)
	for _, q := range d.Queues {
		var roles []string
		if slices.Contains(q.Senders.PIDs, p.PID) {
			roles = append(roles, "sends")
		}
		if slices.Contains(q.Receivers.PIDs, p.PID) {
			roles = append(roles, "receives")
		}
		if len(roles) > 0 {
			all = append(all,
				factLine("queue", "%s: %s; %d of %d", blockLabel(q.Names, q.Block), strings.Join(roles, ", "), q.Depth,
					q.Capacity))
		}
	}
	for _, l := range d.Locks {
		if l.Owner == p.PID {
			all = append(all, factLine("owns", "%s %s; %s", l.Kind, blockLabel(l.Names, l.Block),
				words.Count(len(l.Waiting), "waiter")))
		}
	}
	for _, b := range d.Summary.Largest {
		if slices.Contains(b.PIDs, p.PID) {
			all = append(all,
				factLine("largest", "%s, %s, %s, %s", b.Block, words.Bytes(b.Bytes), ageCell(b).text, kindOf(b)))
		}
	}
	return all
}

func waitsOf(d domains.Domain, pid int) (all []line) {
	for _, w := range d.Waits {
		if w.PID == pid {
			l := factLine("waits for", "%s: %s", w.What(), waitTargets(d, w))
			if isDeadlocked(d, pid) {
				l[1].style = alarm
			}
			all = append(all, l)
		}
	}
	return all
}

func (s *screen) queueDetail(d domains.Domain, q domains.Queue, width int) []line {
	chart := max(trendWidth, min(span, width-12))
	key := d.Address + " " + q.Block
	all := []line{styledLine(strong, "queue ", blockLabel(q.Names, q.Block)), nil,
		factLine("lies in", "%s, %s of slots", q.Block, words.Bytes(q.Bytes)), factLine("messages", "%s", q.Label),
		factLine("depth", "%d of %d", q.Depth, q.Capacity),
		line{{fmt.Sprintf("%-12s", ""), faint}, {s.trendText(key+" depth", chart), good}},
		factLine("rate", "%.0f puts/s and %.0f gets/s; %d and %d in total", q.PutsPerSecond, q.GetsPerSecond,
			q.Puts, q.Gets),
		line{{fmt.Sprintf("%-12s", ""), faint}, {s.trendText(key+" rate", chart), good}}}
	if q.Value != nil {
		all = append(all, factLine("value", "%s", valueOf(q).text),
			line{{fmt.Sprintf("%-12s", ""), faint}, {s.trendText(valueKey(d, q), chart), good}})
	}
	if q.Finished {
		all = append(all, factLine("finished", "closed for puts"))
	}
	for _, e := range []struct {
		name string
		end  observe.EndView
	}{{"senders", q.Senders}, {"receivers", q.Receivers}} {
		text := processLabels(d, e.end.PIDs)
		if e.end.InTransit > 0 {
			text = strings.TrimPrefix(text+", "+words.Count(e.end.InTransit, "message"), ", ")
		}
		if e.end.Gone {
			text = "none remaining"
		}
		all = append(all, factLine(e.name, "%s", text))
		if len(e.end.Waiting) > 0 {
			all = append(all, factLine("  waiting", "%s", processLabels(d, e.end.Waiting)))
		}
	}
	return all
}

func lockDetail(d domains.Domain, l observe.LockView) []line {
	all := []line{styledLine(strong, l.Kind, " ", blockLabel(l.Names, l.Block)), nil,
		factLine("lies in", "%s", l.Block),
		factLine("state", "%s", stateOf(l)), factLine("owner", "%s", processLabel(d, l.Owner)),
		factLine("waiting", "%s", processLabels(d, l.Waiting))}
	for _, sh := range l.Shares {
		text := fmt.Sprintf("%d of %s", sh.Count, processLabel(d, sh.PID))
		if sh.Dead {
			text += ", which is dead"
		}
		all = append(all, factLine("share", "%s", text))
	}
	return append(all, factLine("users", "%s", processLabels(d, l.PIDs)))
}

// kindOf describes the contents of a block: dtype and shape for a tensor, otherwise the kind.
func kindOf(b observe.BlockView) string {
	if b.DType != "" {
		return b.DType + " " + b.Shape
	}
	return b.Kind
}

func blockDetail(d domains.Domain, b observe.BlockView) []line {
	all := []line{styledLine(strong, b.Block), nil, factLine("kind", "%s", b.Kind),
		factLine("size", "%s; its size class has %s at most", words.Bytes(b.Bytes), words.Bytes(b.Size)),
		factLine("age", "%s", ageCell(b).text), factLine("holders", "%s", holderText(d, b))}
	if len(b.Names) > 0 {
		all = append(all, factLine("names", "%s", strings.Join(b.Names, ", ")))
	}
	if b.DType != "" {
		all = append(all, factLine("tensor", "%s %s", b.DType, b.Shape))
	}
	if b.Stack == "" {
		return append(all, factLine("stack", "unknown: start the program with SHOAL_DEBUG=lifetime"))
	}
	for l := range strings.SplitSeq(strings.TrimSpace(b.Stack), "\n") {
		all = append(all, factLine("stack", "%s", strings.ReplaceAll(l, "\t", "  ")))
	}
	return all
}
