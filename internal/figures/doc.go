// Package figures reads the figures of a program's shared memory, for the packages that hand them
// to a system that collects metrics. So all these systems have the same figures.
//
// A reading looks at the shared memory as it is then, and takes no lock that other processes take.
package figures
