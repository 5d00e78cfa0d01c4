//go:build !race

package word

// RaceEnabled is true in binaries that are built with -race.
const RaceEnabled = false
