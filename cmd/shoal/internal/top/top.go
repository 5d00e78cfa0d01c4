package top

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/internal/words"
)

// Options configure [Run].
type Options struct {
	Every time.Duration // interval
	Count int           // number of text outputs; 0 means no limit
	JSON  bool          // one JSON object per line
	Keys  *os.File      // terminal for the screen; nil for text
}

// A look observes the domains for a duration, as [domains.Watcher.Look] does.
type look func(ctx context.Context, span time.Duration) (domains.Census, error)

// Run shows the programs until ctx is done, the user quits or Options.Count outputs are written. If
// ctx is done, it returns the cause. It returns an error if an observation or a write fails.
func Run(ctx context.Context, out io.Writer, o Options) error {
	var w domains.Watcher
	return run(ctx, out, o, w.Look)
}

func run(ctx context.Context, out io.Writer, o Options, see look) error {
	if f, ok := out.(*os.File); ok && o.hasScreen(f) {
		return runScreen(ctx, &terminal{in: o.Keys, out: f}, o.Every, see)
	}
	show := func(c any) error {
		var b bytes.Buffer
		if err := draw(&b, c.(domains.Census)); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%s\n", b.Bytes())
		return err
	}
	if o.JSON {
		show = json.NewEncoder(out).Encode
	}
	for n := 0; o.Count == 0 || n < o.Count; n++ {
		c, err := see(ctx, o.Every)
		if err != nil {
			return err
		}
		if err := show(c); err != nil {
			return err
		}
	}
	return nil
}

// hasScreen reports whether the interactive screen can be used: the input and the output must be
// terminals with cursor control.
func (o Options) hasScreen(out *os.File) bool {
	kind := os.Getenv("TERM")
	return !o.JSON && o.Count == 0 && o.Keys != nil && kind != "" && kind != "dumb" &&
		term.IsTerminal(int(o.Keys.Fd())) && term.IsTerminal(int(out.Fd()))
}

// draw writes the machine and each domain as text.
func draw(out io.Writer, c domains.Census) error {
	fmt.Fprintf(out, "CPUs %.0f %% busy, %.0f involuntary switches/s\n", 100*c.Machine.Utilisation,
		c.Machine.InvoluntaryPerSecond)
	if len(c.Domains) == 0 {
		fmt.Fprintln(out, "\nno Shoal programs of this user are running")
	}
	for _, d := range c.Domains {
		fmt.Fprintln(out)
		if err := d.Print(out); err != nil {
			return err
		}
		for _, q := range curveQueues(d) {
			words.Fprintf(out, "%s: %s\n", blockLabel(q.Names, q.Block), valueOf(q).text)
		}
	}
	return nil
}
