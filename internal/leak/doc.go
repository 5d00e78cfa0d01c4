// Package leak compares what a process has before its tests with what it has after them: blocks of
// shared memory, goroutines, descriptors and child processes. Package shoaltest asks it.
package leak
