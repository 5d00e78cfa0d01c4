//go:build !linux

// Command pystorm is a worker of python/tests/storm.py. It needs Linux.
package main

import "fmt"

func main() { fmt.Println("pystorm: only for Linux") }
