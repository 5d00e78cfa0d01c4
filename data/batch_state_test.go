package data

import (
	"slices"
	"testing"
)

// TestBatchState_ReachesAndLeavesEachPhase: the table has no phase that a batch never has, none
// that it never leaves but ready, and no way in a circle but that of a layout that did not fit.
func TestBatchState_ReachesAndLeavesEachPhase(t *testing.T) {
	reached := map[batchPhase]bool{planned: true}
	for from, next := range phaseAfter {
		for _, to := range next {
			reached[to] = true
			back := to <= batchPhase(from)
			if back && !(batchPhase(from) == mismatched && to == probing) {
				t.Errorf("%v comes before %v", to, batchPhase(from))
			}
		}
		if (len(next) == 0) != (batchPhase(from) == ready) {
			t.Errorf("%v is followed by %v", batchPhase(from), next)
		}
	}
	if len(reached) != len(phaseAfter) || len(phaseNames) != len(phaseAfter) {
		t.Errorf("%d phases of %d are reached, %d have names", len(reached), len(phaseAfter), len(phaseNames))
	}
}

// TestBatchState_KeepsToItsTable: a step that the table does not have is a fault of the prefetcher,
// and found at once.
func TestBatchState_KeepsToItsTable(t *testing.T) {
	for from := range phaseAfter {
		for to := range phaseAfter {
			if legal := moves(batchPhase(from), batchPhase(to)); legal != slices.Contains(phaseAfter[from],
				batchPhase(to)) {
				t.Errorf("%v to %v: legal is %v", batchPhase(from), batchPhase(to), legal)
			}
		}
	}
}

func moves(from, to batchPhase) (legal bool) {
	defer func() { legal = recover() == nil }()
	b := &batchState{phase: from}
	b.setPhase(to)
	return true
}
