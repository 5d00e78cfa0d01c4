// Package leak compares the resources of a process before and after its tests: blocks of shared
// memory, goroutines, descriptors and child processes. It is used by package shoaltest.
package leak
