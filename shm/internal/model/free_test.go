package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/shm/internal/model"
)

func TestFreeList(t *testing.T) {
	holds(t, model.Explore(model.FreeList{Rounds: 1, Kills: kills(2)}.Model(), limit))
}

func TestFreeListMutations(t *testing.T) {
	for _, bug := range []string{model.NoEpoch, model.OneBitTag, model.UnlistAny, model.MarkBack, model.LinkStore, model.NoLostFlag} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.FreeList{Rounds: 2, Kills: 1, Bug: bug}.Model(), limit))
		})
	}
}

func TestFreeMap(t *testing.T) {
	holds(t, model.Explore(model.FreeMap{Rounds: 3, Kills: kills(3)}.Model(), limit))
}

func TestFreeMapMutations(t *testing.T) {
	for _, bug := range []string{model.NoDryLook, model.SummarySet, model.BitEarly, model.MapNoLost, model.SweepNoSum, model.TrustTheMap} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.FreeMap{Rounds: 2, Kills: 1, Bug: bug}.Model(), limit))
		})
	}
}
