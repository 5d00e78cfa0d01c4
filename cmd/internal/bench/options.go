package bench

import "io"

// Options say what is measured and where it is written. The zero value measures the suite core and
// writes nothing.
type Options struct {
	// Suites are the names of the suites to run, see Suites. Empty means core, or every suite with
	// All; but those that need a PyTorch for both sides are not among all without Against.
	Suites []string
	All    bool

	// More are suites besides those of this package.
	More []Suite

	// Against is the peer that the same work is measured with: torch, or empty for none. Python is
	// the interpreter that has it, python3 if empty.
	Against string
	Python  string

	// Quick measures every row once and briefly. The values mean nothing; it shows that everything
	// runs here.
	Quick bool

	// Out gets the results, as a table or, with JSON, as one object a line. Log gets everything
	// else. Nil discards.
	Out  io.Writer
	JSON bool
	Log  io.Writer
}
