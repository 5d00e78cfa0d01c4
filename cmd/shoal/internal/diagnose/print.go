package diagnose

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/shoal-mp/shoal/cmd/internal/words"
)

// Print writes the report as text: the verdict, the evidence and the remedy of each finding, and
// the process tree.
func (r *Report) Print(out io.Writer) error {
	words.Fprintf(out, "%s\n", r.Verdict)
	for i, f := range r.Findings {
		if i > 0 {
			words.Fprintf(out, "\nalso: %s\n", f.Cause)
		}
		for _, e := range f.Evidence {
			words.Fprintf(out, "  - %s\n", e)
		}
		words.Fprintf(out, "  remedy: %s\n", f.Cure)
	}
	for _, n := range r.Notes {
		words.Fprintf(out, "note: %s\n", n)
	}
	if len(r.Processes) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROCESS\tROLE\tSTATE\tCPU\tTHREADS\tMEMORY\tFILES\tWAITS FOR")
	for _, p := range r.Processes {
		words.Fprintf(w, "%s%d\t%s\t%s\t%.2f\t%d\t%s\t%d\t%s\n", strings.Repeat("  ", p.Depth), p.PID, p.title(),
			p.State, p.CPU,
			p.Threads, words.Bytes(p.Memory), p.Files, p.Wait)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return r.printStacks(out)
}

func (p Process) title() string {
	if p.Rank != "" {
		return p.Role + " " + p.Rank
	}
	return p.Role
}

// maxPrinted is the number of frames of a stack in the text.
const maxPrinted = 6

// printStacks writes up to maxPrinted of the innermost frames of each main thread.
func (r *Report) printStacks(out io.Writer) error {
	_, err := words.Fprintf(out, "\nPython stacks (%s), observed for %.1f s\n", r.Stacks, r.Seconds)
	for _, p := range r.Processes {
		for _, s := range p.Stacks {
			if s.TID != p.PID || len(s.Frames) == 0 {
				continue
			}
			words.Fprintf(out, "  %d\n", p.PID)
			for _, f := range s.Frames[:min(len(s.Frames), maxPrinted)] {
				_, err = words.Fprintf(out, "    %s\n", f.String())
			}
		}
	}
	return err
}
