package doctor

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print writes the report for people.
func (r *Report) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("kernel", "Linux %s, %s", r.Kernel.Release, r.Kernel.calls())
	row("doorbell", "%.1f µs from a ring to the wake of who waits", r.Kernel.Doorbell/1e3)
	r.CPUs.print(row)
	r.Memory.print(row)
	row("now", "CPUs %.0f %% busy, %.0f involuntary switches/s, over %.1f s", 100*r.Machine.Utilisation, r.Machine.InvoluntaryPerSecond, r.Machine.Seconds)
	if err := w.Flush(); err != nil {
		return err
	}
	for _, d := range r.Domains {
		if err := d.print(out); err != nil {
			return err
		}
	}
	if len(r.Domains) == 0 {
		fmt.Fprintln(out, "\nno Shoal program of this user runs here")
	}
	if len(r.Advice) == 0 {
		_, err := fmt.Fprintln(out, "\nnothing to set")
		return err
	}
	fmt.Fprintln(out, "\nwhat to set:")
	for _, a := range r.Advice {
		if _, err := fmt.Fprintln(out, "  -", a); err != nil {
			return err
		}
	}
	return nil
}

func (k Kernel) calls() string {
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
		quota = fmt.Sprintf("a quota of %.4g", c.Quota)
	}
	row("CPUs", "%d in the machine, affinity %v, %s: %d usable", c.Machine, c.Affinity, quota, c.Usable)
	var shares []string
	for _, s := range c.Shares {
		shares = append(shares, fmt.Sprintf("%d by %d", s.Threads, s.Workers))
	}
	row("threads", "of each worker, floor(%d/M) and at least 1: %s", c.Usable, strings.Join(shares, ", "))
}

func (m Memory) print(row func(name, format string, args ...any)) {
	group := "no control group limit"
	if m.CgroupLimit >= 0 {
		group = fmt.Sprintf("control group %s of %s used", bytesText(m.CgroupUsage), bytesText(m.CgroupLimit))
	}
	if m.Shared {
		group += ", shared with others"
	}
	row("memory", "%s of %s available, %s", bytesText(m.Available), bytesText(m.Total), group)
	row("budget", "%s for a domain that begins now", bytesText(m.Budget))
	row("limits", "address space %s, file size %s, open files %s", limitText(m.AddressSpace, bytesText), limitText(m.FileSize, bytesText),
		limitText(m.OpenFiles, func(n int64) string { return fmt.Sprint(n) }))
}

func (d Domain) print(out io.Writer) error {
	if d.Error != "" {
		_, err := fmt.Fprintf(out, "\ndomain %s: %s\n", d.Address, d.Error)
		return err
	}
	fmt.Fprintf(out, "\ndomain %s: %s of %s committed\n", d.Address, bytesText(d.Committed), bytesText(d.Limit))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "pid\tname\tbudget\tthreads\trunnable\tCPUs\tinvoluntary/s\t")
	for _, p := range d.Processes {
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%d\t%.2f\t%.0f\t\n", p.PID, p.Name, budgetText(p.GOMAXPROCS), p.Threads, p.Runnable, p.CPUs, p.InvoluntaryPerSecond)
	}
	return w.Flush()
}

func budgetText(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func limitText(n int64, text func(int64) string) string {
	if n < 0 {
		return "unlimited"
	}
	return text(n)
}

// bytesText prints a size with the unit that suits it.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	return fmt.Sprintf("%.4g %s", v, units[i])
}
