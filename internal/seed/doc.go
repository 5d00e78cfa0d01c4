// Package seed holds the random seed of a process, and derives a seed for each worker that the
// process starts.
package seed
