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

// textWidth returns the text width for a file: the width of the terminal, at most 100, or 80.
func textWidth(f *os.File) int {
	const widest = 100
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return min(w, widest)
	}
	return 80
}

// An entry is a term, such as an option, and its description.
type entry struct{ term, text string }

// writeHelp writes the usage of a program, or of its active command, to out. Lines have at most
// width characters unless a single word is longer. It replaces the help of package flags, which
// breaks words and leaves ten columns for descriptions on a narrow terminal.
func writeHelp(out io.Writer, p *flags.Parser, width int) error {
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
	b.WriteString("Usage:\n  " + wrapText(usage, width-4, "\n    ") + "\n")
	b.WriteString("\n" + wrapText(c.ShortDescription, width, "\n") + "\n")
	writeEntries(&b, "Arguments", arguments, width)
	writeEntries(&b, "Options", append(listOptions(c.Group), entry{"-h, --help", "Show this help."}), width)
	var commands []entry
	for _, s := range c.Commands() {
		commands = append(commands, entry{s.Name, s.ShortDescription})
	}
	writeEntries(&b, "Commands", commands, width)
	_, err := io.WriteString(out, b.String())
	return err
}

// listOptions returns the options of a command except --help.
func listOptions(g *flags.Group) (all []entry) {
	for _, s := range g.Groups() {
		if s.ShortDescription != "Help Options" {
			all = append(all, listOptions(s)...)
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

// writeEntries writes entries below a heading in two columns, or nothing if there are none. If
// the second column would be too narrow, each description is written below its term. width is
// the width of both columns in characters.
func writeEntries(b *strings.Builder, heading string, all []entry, width int) {
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
			b.WriteString("  " + e.term + "\n        " + wrapText(e.text, width-below, "\n        ") + "\n")
			continue
		}
		fmt.Fprintf(b, "  %-*s%s\n", column-inset, e.term,
			wrapText(e.text, width-column, "\n"+strings.Repeat(" ", column)))
	}
}

// wrapText breaks text between words into lines of at most width characters, separated by end. A
// longer word gets a line of its own.
func wrapText(text string, width int, end string) string {
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
