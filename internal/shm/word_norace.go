//go:build !race

package shm

// racing is true in binaries that are built with -race.
const racing = false
