//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "torture: it asks /proc what is left, so it needs Linux")
	os.Exit(2)
}
