//go:build shoalcrash

// Command crashtest kills processes of a domain at every write to shared memory and at random
// times, and audits the domain afterwards. It must be built with the tag shoalcrash.
//
//	crashtest points [flags]   kill at every write ("make crashpoints")
//	crashtest storm [flags]    kill at random times ("make storm")
//
// It prints the violations that it found and exits with a nonzero status if there are any.
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: crashtest points | storm [flags]")
		os.Exit(2)
	}
	run := map[string]func(string) error{
		"points": pointsMain, "storm": stormMain,
		"bench": benchMain, "victim": victimMain, "worker": workerMain,
	}[os.Args[1]]
	arg := strings.Join(os.Args[2:], " ")
	if run == nil {
		fmt.Fprintf(os.Stderr, "crashtest: %q: want points or storm\n", os.Args[1])
		os.Exit(2)
	}
	if err := run(arg); err != nil {
		fmt.Fprintln(os.Stderr, "crashtest:", err)
		os.Exit(1)
	}
}
