// Libshoal is Shoal as a C library: a domain of shared memory with tensors, queues, locks and names
// for programs in C, C++, Rust and Python. The file shoal.h documents it. It is built by
//
//	go build -buildmode=c-shared -o libshoal.so ./libshoal
//
// which needs a C compiler. Built without one, it is a program that says so.
//
// # The trap
//
// The library does not survive fork. In the child each function returns SHOAL_FORKED.
package main

import (
	"fmt"
	"os"
)

// main runs only if the package was built as a program.
func main() {
	fmt.Fprintln(os.Stderr, "libshoal is a C library: build it by CGO_ENABLED=1 go build -buildmode=c-shared "+
		"-o libshoal.so ./libshoal, which needs gcc or another C compiler")
	os.Exit(2)
}
