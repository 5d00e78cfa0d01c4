// Package model explores the memory protocol of package shm exhaustively: every order of the atomic
// steps of a few participants, with a kill between any two of them.
//
// Each file is one model: a state (a small comparable struct), the steps that lead from it, and the
// invariants. Steps are sequentially consistent, as Go's atomics are. A model that finds nothing
// proves little by itself, so each has a list of mutations. A mutation leaves out one rule of
// docs/memory.md, and the tests fail for a mutation that is not found.
//
//	result := model.Explore(model.Wake{Messages: [2]int{1, 1}, Kills: 1}.Model(), 10_000_000)
//	if result.Err != nil {
//		fmt.Println(result) // the violation and the steps that lead to it
//	}
//
// The file participant.go has what all models say of processes: lives and deaths, seats that are
// taken again, how often a run kills.
//
// There is one trap: a wait has to be a step that is not enabled, never a step that leads back to
// the same place. The explorer finds a participant that waits for ever because no step is left. A
// participant that polls for ever looks busy to the explorer.
//
// The package is a test tool. Only the tests import it, and it imports nothing of shm, because it
// follows the specification and not the code.
package model
