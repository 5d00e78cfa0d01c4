//go:build race

package hogwild_test

const raceEnabled = true
