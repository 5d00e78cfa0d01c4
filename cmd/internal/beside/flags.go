package beside

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
)

// ParseFlags parses the arguments of a program. It prints help on standard output and exits with
// status 0. For an invalid flag it prints one line on standard error and exits with status 2;
// package flag would add the whole usage text, which hides the error.
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
		fmt.Fprintf(os.Stderr, "%s: %v: see -help\n", program, err)
		os.Exit(2)
	}
}
