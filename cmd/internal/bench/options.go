package bench

import "io"

// Options configure [Run]. The zero value measures the suite core and writes nothing.
type Options struct {
	// Suites are the names of the suites to run; see [Suites]. Empty means core, or with All every
	// suite. Suites that need PyTorch for both sides are then included only if Against is set.
	Suites []string
	All    bool

	// More are additional suites from other packages.
	More []Suite

	// Against is the peer to compare with: torch, or empty for none. Python is the interpreter that
	// has it; empty means python3.
	Against string
	Python  string

	// Quick measures every row once and briefly. It checks that everything runs; the values are
	// meaningless.
	Quick bool

	// Out receives the results, as a table or with JSON as one object per line. Log receives
	// everything else. Nil discards.
	Out  io.Writer
	JSON bool
	Log  io.Writer
}
