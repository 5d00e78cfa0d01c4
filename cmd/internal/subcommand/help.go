package subcommand

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/jessevdk/go-flags"
	"golang.org/x/term"
)

// columns returns the text width for a file: the width of the terminal, at most 100, or 80.
func columns(f *os.File) int {
	const widest = 100
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return min(w, widest)
	}
	return 80
}

// An entry is a term, such as an option, and its description.
type entry struct{ term, text string }

// help writes the usage of a program, or of its active command. Lines have at most width characters
// unless a single word is longer. It replaces the help of package flags, which breaks words and
// leaves ten columns for descriptions on a narrow terminal.
func help(out io.Writer, p *flags.Parser, width int) error {
	c, usage := p.Command, p.Name
	if p.Active != nil {
		c = p.Active
		usage += " " + c.Name
	}
	var b strings.Builder
	usage += " [OPTIONS]"
	if len(c.Commands()) > 0 {
		usage += " COMMAND"
	}
	var arguments []entry
	for _, a := range c.Args() {
		if c.ArgsRequired {
			usage += " " + a.Name
		} else {
			usage += " [" + a.Name + "...]"
		}
		arguments = append(arguments, entry{a.Name, a.Description})
	}
	b.WriteString("Usage:\n  " + wrap(usage, width-4, "\n    ") + "\n")
	b.WriteString("\n" + wrap(c.ShortDescription, width, "\n") + "\n")
	list(&b, "Arguments", arguments, width)
	list(&b, "Options", append(options(c.Group), entry{"-h, --help", "Show this help."}), width)
	var commands []entry
	for _, s := range c.Commands() {
		commands = append(commands, entry{s.Name, s.ShortDescription})
	}
	list(&b, "Commands", commands, width)
	_, err := io.WriteString(out, b.String())
	return err
}

// options returns the options of a command except --help.
func options(g *flags.Group) (all []entry) {
	for _, s := range g.Groups() {
		if s.ShortDescription != "Help Options" {
			all = append(all, options(s)...)
		}
	}
	for _, o := range g.Options() {
		e := entry{"    --" + o.LongName, o.Description}
		if o.ShortName != 0 {
			e.term = fmt.Sprintf("-%c, --%s", o.ShortName, o.LongName)
		}
		if o.ValueName != "" {
			e.term += "=" + o.ValueName
		}
		if len(o.Choices) > 0 {
			e.text += " One of " + strings.Join(o.Choices, ", ") + "."
		}
		if len(o.Default) > 0 {
			e.text += " (default: " + strings.Join(o.Default, ", ") + ")"
		}
		all = append(all, e)
	}
	return all
}

// list writes entries below a heading in two columns. If the second column would be too narrow,
// each description is written below its term.
func list(b *strings.Builder, heading string, all []entry, width int) {
	if len(all) == 0 {
		return
	}
	const inset, below, narrow = 2, 8, 32
	column := 0
	for _, e := range all {
		column = max(column, inset+utf8.RuneCountInString(e.term)+2)
	}
	fmt.Fprintf(b, "\n%s:\n", heading)
	for _, e := range all {
		if width-column < narrow {
			b.WriteString("  " + e.term + "\n        " + wrap(e.text, width-below, "\n        ") + "\n")
			continue
		}
		fmt.Fprintf(b, "  %-*s%s\n", column-inset, e.term,
			wrap(e.text, width-column, "\n"+strings.Repeat(" ", column)))
	}
}

// wrap breaks text between words into lines of at most width characters, separated by end.
func wrap(text string, width int, end string) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > width:
			b.WriteString(end)
			used = 0
		default:
			b.WriteString(" ")
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}
