package shoaltest

import (
	"fmt"
	"os"
	"strings"

	_ "github.com/shoal-mp/shoal" // tells internal/leak of its processes
	"github.com/shoal-mp/shoal/internal/leak"
)

// TestMain is shoal.Main for test binaries that start processes. It does not return.
//
// It fails the run with status 99 if the tests have left anything behind that was not there before
// them and that the garbage collector does not take back: a child process, blocks of the default
// domain, a goroutine, a descriptor. It says what, and with which calls it was started or opened;
// of blocks with SHOAL_DEBUG=lifetime. The calls are not known for descriptors and processes that
// the program itself opens or starts with packages os, os/exec and net. What is to stay is made
// before TestMain. Where NVIDIA's driver is loaded, descriptors such as it keeps are not looked
// for: device files, pipes, sockets and events.
func TestMain(m interface{ Run() int }) {
	leak.Processes.Begin()
	quickRaceExit()
	leak.Record()
	before := leak.Take()
	code := m.Run()
	if left := before.Leave(); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "shoaltest: tests left something behind:\n\t%s\n", strings.Join(left, "\n\t"))
		code = leftBehind
	}
	os.Exit(code)
}

// leftBehind is the exit status of a test run that would otherwise have hidden a leak.
const leftBehind = 99

// quickRaceExit spares every child of a race-detecting test binary the second that it sleeps at its
// end.
func quickRaceExit() {
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
}
