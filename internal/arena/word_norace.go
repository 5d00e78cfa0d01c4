//go:build !race

package arena

// racing is true in binaries that are built with -race.
const racing = false
