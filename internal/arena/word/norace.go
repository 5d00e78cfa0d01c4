//go:build !race

package word

// racing is true in binaries that are built with -race.
const RaceEnabled = false
