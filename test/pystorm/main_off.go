//go:build !linux

package main

import "fmt"

func main() { fmt.Println("pystorm: only for Linux") }
