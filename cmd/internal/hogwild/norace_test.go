//go:build !race

package hogwild_test

const raceEnabled = false
