//go:build !shoalcrash

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "crashtest: build it with -tags shoalcrash; make crashpoints and make storm do")
	os.Exit(2)
}
