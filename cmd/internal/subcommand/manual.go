package subcommand

import (
	"context"
	"os"

	"github.com/jessevdk/go-flags"
)

// manual prints the program's manual page. It has the same content as --help.
type manual struct{ parser *flags.Parser }

// Run prints the page in roff and returns nil. Its date is taken from SOURCE_DATE_EPOCH if that is
// set.
func (m *manual) Run(context.Context) error {
	m.parser.LongDescription = m.parser.ShortDescription + " Run COMMAND --help for the help of a command."
	for _, c := range m.parser.Commands() {
		c.LongDescription = "" // otherwise the page repeats the description
	}
	m.parser.WriteManPage(os.Stdout)
	return nil
}
