package subcommand

import (
	"context"
	"os"

	"github.com/jessevdk/go-flags"
)

// manual prints the program's manual page, which is made of what --help shows.
type manual struct{ parser *flags.Parser }

// Run prints the page as roff. Its date is that of SOURCE_DATE_EPOCH, if that is set.
func (m *manual) Run(context.Context) error {
	m.parser.LongDescription = m.parser.ShortDescription + " Each command has a page of its own: COMMAND --help."
	for _, c := range m.parser.Commands() {
		c.LongDescription = "" // the page would say what a command does three times
	}
	m.parser.WriteManPage(os.Stdout)
	return nil
}
