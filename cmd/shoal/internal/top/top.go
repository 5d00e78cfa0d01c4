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

// Options say how often to look, and what to show.
type Options struct {
	Every time.Duration // from one picture to the next
	Count int           // pictures of text; 0 is until the context is done
	JSON  bool          // one object a line, for programs
	Keys  *os.File      // the terminal of a screen; nil for text
}

// A look is what a Watcher sees.
type look func(ctx context.Context, span time.Duration) (domains.Census, error)

// Run shows until the context is done, whose cause it returns, until the person at the screen has
// seen enough, or until it has shown as many pictures as were wanted.
func Run(ctx context.Context, out io.Writer, o Options) error {
	var w domains.Watcher
	return run(ctx, out, o, w.Look)
}

func run(ctx context.Context, out io.Writer, o Options, see look) error {
	if f, ok := out.(*os.File); ok && o.hasScreen(f) {
		return watch(ctx, &terminal{in: o.Keys, out: f}, o.Every, see)
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

// hasScreen reports whether a person sits at both ends of the terminal, and the terminal can move
// its cursor.
func (o Options) hasScreen(out *os.File) bool {
	kind := os.Getenv("TERM")
	return !o.JSON && o.Count == 0 && o.Keys != nil && kind != "" && kind != "dumb" &&
		term.IsTerminal(int(o.Keys.Fd())) && term.IsTerminal(int(out.Fd()))
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
		for _, q := range curves(d) {
			words.Fprintf(out, "%s: %s\n", label(q.Names, q.Block), valueOf(q).text)
		}
	}
	return nil
}
