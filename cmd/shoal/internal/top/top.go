package top

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8/cwriter"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
)

// Options say how often to print, and where.
type Options struct {
	Every time.Duration // from one picture to the next
	Count int           // pictures; 0 is until the context is done
	JSON  bool          // one object a line, for programs
}

// Run shows until the context is done, whose cause it returns, or until it has shown as many
// pictures as were wanted.
func Run(ctx context.Context, out io.Writer, o Options) error {
	show := showText(out)
	if o.JSON {
		show = json.NewEncoder(out).Encode
	}
	var w domains.Watcher
	for n := 0; o.Count == 0 || n < o.Count; n++ {
		c, err := w.Look(ctx, o.Every)
		if err != nil {
			return err
		}
		if err := show(c); err != nil {
			return err
		}
	}
	return nil
}

// showText draws over the last picture where out is a terminal.
func showText(out io.Writer) func(any) error {
	screen := cwriter.New(out)
	return func(c any) error {
		var b bytes.Buffer
		if err := draw(&b, c.(domains.Census)); err != nil {
			return err
		}
		width, height, err := screen.GetTermSize()
		if err != nil { // no terminal
			_, err := fmt.Fprintf(out, "%s\n", b.Bytes())
			return err
		}
		lines := fit(b.String(), width, height)
		fmt.Fprint(screen, lines)
		return screen.Flush(strings.Count(lines, "\n"))
	}
}

// draw writes the machine and then each domain.
func draw(out io.Writer, c domains.Census) error {
	fmt.Fprintf(out, "CPUs %.0f %% busy, %.0f involuntary switches/s\n", 100*c.Machine.Utilisation,
		c.Machine.InvoluntaryPerSecond)
	if len(c.Domains) == 0 {
		fmt.Fprintln(out, "\nno Shoal program of this user runs here")
	}
	for _, d := range c.Domains {
		fmt.Fprintln(out)
		if err := d.Print(out); err != nil {
			return err
		}
	}
	return nil
}

// fit leaves out what a terminal has no room for, so that no line becomes two and the first one
// does not scroll away.
func fit(text string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if room := max(2, height-1); len(lines) > room {
		lines = append(lines[:room-1], fmt.Sprintf("and %d lines more", len(lines)-room+1))
	}
	for i, l := range lines {
		if r := []rune(l); len(r) > width {
			lines[i] = string(r[:width])
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
