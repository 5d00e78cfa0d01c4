// Package figures collects metrics of a program's shared memory, for packages that export them to a
// metrics system, so that all these systems get the same metrics.
//
// A reading describes the current state and takes no lock that other processes use.
package figures
