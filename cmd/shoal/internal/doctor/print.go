package doctor

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/shoal-mp/shoal/cmd/internal/words"
)

// Print writes the report as text.
func (r *Report) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		words.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("kernel", "Linux %s, %s", r.Kernel.Release, r.Kernel.callsText())
	row("doorbell", "%.1f µs from a ring to the wakeup of the waiter", r.Kernel.Doorbell/1e3)
	r.CPUs.print(row)
	r.Memory.print(row)
	row("now", "CPUs %.0f %% busy, %.0f involuntary switches/s, over %.1f s", 100*r.Machine.Utilisation,
		r.Machine.InvoluntaryPerSecond, r.Machine.Seconds)
	if err := w.Flush(); err != nil {
		return err
	}
	for _, d := range r.Domains {
		fmt.Fprintln(out)
		if err := d.Print(out); err != nil {
			return err
		}
	}
	if len(r.Domains) == 0 {
		fmt.Fprintln(out, "\nno Shoal programs of this user are running")
	}
	if len(r.Advice) == 0 {
		_, err := fmt.Fprintln(out, "\nno changes recommended")
		return err
	}
	fmt.Fprintln(out, "\nrecommended changes:")
	for _, a := range r.Advice {
		if _, err := words.Fprintf(out, "  - %s\n", a); err != nil {
			return err
		}
	}
	return nil
}

func (k Kernel) callsText() string {
	if len(k.Missing) == 0 {
		return "all calls work"
	}
	var names []string
	for _, c := range k.Missing {
		names = append(names, c.Name)
	}
	return "missing: " + strings.Join(names, "; ")
}

func (c CPUs) print(row func(name, format string, args ...any)) {
	quota := "no quota"
	if c.Quota > 0 {
		quota = fmt.Sprintf("quota %.4g", c.Quota)
	}
	row("CPUs", "%d in the machine, affinity %v, %s: %d usable", c.Machine, c.Affinity, quota, c.Usable)
	var shares []string
	for _, s := range c.Shares {
		shares = append(shares, fmt.Sprintf("%d by %d", s.Threads, s.Workers))
	}
	row("threads", "per worker, floor(%d/M) and at least 1: %s", c.Usable, strings.Join(shares, ", "))
}

func (m Memory) print(row func(name, format string, args ...any)) {
	group := "no control group limit"
	if m.CgroupLimit >= 0 {
		group = fmt.Sprintf("control group %s of %s used", words.Bytes(m.CgroupUsage), words.Bytes(m.CgroupLimit))
	}
	if m.Shared {
		group += ", shared with others"
	}
	row("memory", "%s of %s available, %s", words.Bytes(m.Available), words.Bytes(m.Total), group)
	row("budget", "%s for a new domain", words.Bytes(m.Budget))
	row("limits", "address space %s, file size %s, open files %s", limitText(m.AddressSpace, words.Bytes),
		limitText(m.FileSize, words.Bytes),
		limitText(m.OpenFiles, func(n int64) string { return fmt.Sprint(n) }))
}

func limitText(n int64, text func(int64) string) string {
	if n < 0 {
		return "unlimited"
	}
	return text(n)
}
