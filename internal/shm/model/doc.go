// Package model explores the memory protocol of package shm exhaustively: every order of the atomic
// steps of a few participants, with a kill between any two of them.
//
// Each file is one model: a state (a small comparable struct), the steps that lead from it, and
// what must hold. Steps are sequentially consistent, which is what Go's atomics promise. A model
// that finds nothing proves little by itself, so each has a list of mutations, one rule of
// docs/memory.md left out at a time, and the tests fail for a mutation that is not found.
//
//	result := model.Explore(model.Wake{Messages: [2]int{1, 1}, Kills: 1}.Model(), 10_000_000)
//	if result.Err != nil {
//		fmt.Println(result) // the violation and the steps that lead to it
//	}
//
// What all models say of processes is in participant.go: lives and deaths, seats that are taken
// again, how often a run kills.
//
// The trap: a wait has to be a step that is not enabled, never a step that leads back to the same
// place. The explorer finds a participant that waits for ever because no step is left; a
// participant that polls for ever looks busy to it.
//
// The package is a test tool. Nothing outside the tests imports it and it imports nothing of shm:
// it follows the specification, not the code.
package model
