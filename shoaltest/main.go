package shoaltest

import (
	"fmt"
	"os"
	"strings"

	_ "github.com/shoal-mp/shoal" // registers its functions with internal/leak
	"github.com/shoal-mp/shoal/internal/leak"
)

// TestMain must be called by the TestMain function of test binaries that start processes, in place
// of [shoal.Main]. It does not return.
//
// The run fails with status 99 if the tests have leaked a child process, a block of the default
// domain, a goroutine or a descriptor that did not exist before the tests and that the garbage
// collector does not release. TestMain prints the leaks, and the call stacks that created them; for
// blocks this needs SHOAL_DEBUG=lifetime. The stacks are unknown for descriptors and processes
// created directly with packages os, os/exec and net. Resources that should outlive the tests must
// be created before TestMain. If NVIDIA's driver is loaded, TestMain ignores descriptors such as
// the driver keeps: device files, pipes, sockets and events.
func TestMain(m interface{ Run() int }) {
	leak.Processes.Begin()
	quickRaceExit()
	leak.Record()
	before := leak.Take()
	code := m.Run()
	if left := before.Leave(); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "shoaltest: the tests leaked:\n\t%s\n", strings.Join(left, "\n\t"))
		code = leftBehind
	}
	os.Exit(code)
}

// leftBehind is the exit status of a test run with leaks. It replaces the status of the tests.
const leftBehind = 99

// quickRaceExit disables the one-second sleep at the exit of every child of a race-enabled test
// binary.
func quickRaceExit() {
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
}
