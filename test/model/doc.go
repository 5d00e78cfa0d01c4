// Package model explores the shared memory protocol of package arena exhaustively: every
// interleaving of the atomic steps of a few participants, with a kill between any two of them.
//
// Each file defines one model: a state (a small comparable struct), the steps that lead from it,
// and the invariants. Steps are sequentially consistent, as Go's atomics are. A model without
// violations proves little by itself, so each model has a list of mutations. A mutation removes one
// rule of docs/memory.md, and the tests fail if a mutation is not detected.
//
//	result := model.Explore(model.Wake{Messages: [2]int{1, 1}, Kills: 1}.Model(), 10_000_000)
//	if result.Err != nil {
//		fmt.Println(result) // the violation and the steps that lead to it
//	}
//
// The file participant.go defines the processes of all models: their lives and deaths, the reuse of
// seats, and the number of kills.
//
// A wait must be modelled as a step that is not enabled, never as a step that leads back to the
// same state. The explorer detects a participant that waits forever because no step is left; a
// participant that polls forever would look busy.
//
// Only tests may import this package. It must not import package arena, because it follows the
// specification and not the code.
package model
