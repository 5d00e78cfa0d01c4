// Package seed keeps what the random numbers of a process begin with, and gives each worker that it
// starts a seed of its own.
package seed
