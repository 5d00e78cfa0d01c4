//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "histories: processes of a group need Linux")
	os.Exit(2)
}
