package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestFreeList(t *testing.T) {
	t.Parallel()
	for _, punch := range []bool{false, true} {
		holds(t, model.Explore(model.FreeList{Rounds: [3]uint8{1, 1, 1}, Punch: punch, Kills: kills(2)}.Model(), limit))
	}
}

func TestFreeListMutations(t *testing.T) {
	t.Parallel()
	one, two := [3]uint8{1, 1, 1}, [3]uint8{1, 1, 0}
	for bug, c := range map[string]model.FreeList{
		model.NoEpoch:    {Rounds: one, Kills: 1},
		model.OneBitTag:  {Rounds: [3]uint8{2, 2, 2}},
		model.UnlistAny:  {Rounds: two, Lost: true},
		model.HeadFirst:  {Rounds: two, Lost: true},
		model.LinkStore:  {Rounds: two, Lost: true},
		model.OwnMark:    {Rounds: one},
		model.NoLostFlag: {Rounds: one, Kills: 1},
		model.ClearLoss:  {Rounds: one, Lost: true, Kills: 1},
		model.PunchQuiet: {Rounds: one, Punch: true},
	} {
		t.Run(bug, func(t *testing.T) {
			c.Bug = bug
			fails(t, model.Explore(c.Model(), limit))
		})
	}
}
