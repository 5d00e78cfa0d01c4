//go:build !linux

package mpi

// A hydra is the socket to the launcher of this process: see hydra_linux.go.
type hydra struct{}

func findHydra(func(string) string) hydra { return hydra{} }

func (hydra) leave() error { return nil }
