package beside

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
)

// ParseFlags reads the arguments of a program. Help goes to standard output. A flag that is wrong
// is one line on standard error, and exit status 2: package flag would add all of the help, in
// which that line is lost.
func ParseFlags(program string, f *flag.FlagSet, args []string) {
	var said bytes.Buffer
	f.Init(program, flag.ContinueOnError)
	f.SetOutput(&said)
	err := f.Parse(args)
	switch {
	case err == nil:
		f.SetOutput(os.Stderr)
	case errors.Is(err, flag.ErrHelp):
		os.Stdout.Write(said.Bytes())
		os.Exit(0)
	default:
		fmt.Fprintf(os.Stderr, "%s: %v; -help shows what there is\n", program, err)
		os.Exit(2)
	}
}
