package domains

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/shoal-mp/shoal/cmd/internal/words"
)

const gauge = 24 // width in characters

// Print writes the domain as text: its memory, its rates, its waits and one line for each process.
func (d Domain) Print(out io.Writer) error {
	if d.Error != "" {
		_, err := words.Fprintf(out, "domain %s: %s\n", d.Address, d.Error)
		return err
	}
	words.Fprintf(out, "domain %s\n", d.Address)
	words.Fprintf(out, "  %s %s of %s committed, %s of it in %s\n", d.Gauge(gauge), words.Bytes(d.Committed),
		words.Bytes(d.Limit),
		words.Bytes(d.Bytes), words.Count(d.Blocks, "block"))
	words.Fprintf(out, "  %.0f allocations/s, %s copied/s, %s in transit, %s reaped\n",
		d.AllocsPerSecond, words.Bytes(int64(d.CopiedPerSecond)),
		words.Count(d.InTransit, "reference"), words.Count(d.Reaped, "dead worker"))
	if len(d.Names) > 0 {
		words.Fprintf(out, "  %s: %s\n", words.Count(len(d.Names), "name"), d.nameList())
	}
	d.printWaits(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "pid\tname\tholds\tCPUs\tbudget\tthreads\trunnable\tinvoluntary/s\t")
	for _, p := range d.Processes {
		words.Fprintf(w, "%d\t%s\t%s\t%.2f\t%s\t%d\t%d\t%.0f\t\n", p.PID, p.Name, words.Bytes(p.Holds), p.CPUs,
			p.budgetText(), p.Threads, p.Runnable, p.InvoluntaryPerSecond)
	}
	return w.Flush()
}

// printWaits writes the suspected deadlocks, and the queues and locks with waiters.
func (d Domain) printWaits(out io.Writer) {
	for _, c := range d.Deadlocks {
		if c.Doubt == "" {
			fmt.Fprintln(out, "  suspected deadlock:")
		} else {
			words.Fprintf(out, "  cyclic wait; %s:\n", c.Doubt)
		}
		for _, w := range c.Waits {
			words.Fprintf(out, "    %s\n", w)
		}
	}
	const most = 8 // lines of each kind
	left := d.QueuesLeft
	for i, q := range d.Queues {
		if i >= most {
			left++
			continue
		}
		words.Fprintf(out, "  queue %s: %d of %d, %.0f puts/s, %.0f gets/s, %s\n",
			blockLabel(q.Names, q.Block), q.Depth,
			q.Capacity, q.PutsPerSecond, q.GetsPerSecond,
			words.Count(len(q.Senders.Waiting)+len(q.Receivers.Waiting), "waiter"))
	}
	for i, l := range d.Locks {
		if len(l.Waiting) == 0 && l.Owner == 0 {
			continue
		}
		if i >= most {
			left++
			continue
		}
		words.Fprintf(out, "  %s %s: %s, %s\n", l.Kind, blockLabel(l.Names, l.Block), ownerText(l.Owner),
			words.Count(len(l.Waiting), "waiter"))
	}
	if left > 0 {
		words.Fprintf(out, "  and %d more\n", left)
	}
}

func blockLabel(names []string, block string) string {
	if len(names) > 0 {
		return fmt.Sprintf("%q", names[0])
	}
	return block
}

func ownerText(pid int) string {
	if pid == 0 {
		return "no owner"
	}
	return fmt.Sprintf("owner %d", pid)
}

// Gauge draws the committed share of the budget as a bar of width characters. Any nonzero share has
// at least one mark.
func (d Domain) Gauge(width int) string {
	full := 0
	if w := int64(width); d.Limit > 0 {
		full = int(min(w, (d.Committed*w+d.Limit-1)/d.Limit))
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

// nameList returns the names bound in the domain as text, at most eight of them.
func (d Domain) nameList() string {
	const room = 8
	if len(d.Names) <= room {
		return strings.Join(d.Names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(d.Names[:room], ", "), len(d.Names)-room)
}

// budgetText returns the thread budget of a process as text, or "-" if it has none.
func (p Process) budgetText() string {
	if p.GOMAXPROCS == 0 {
		return "-"
	}
	return fmt.Sprint(p.GOMAXPROCS)
}
