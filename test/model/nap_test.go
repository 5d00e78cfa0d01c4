package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestNap(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.Nap{Messages: [2]int{2, 1}}.Model(), limit))
	holds(t, model.Explore(model.Nap{Messages: [2]int{1, 1}, Ends: true}.Model(), limit))
	holds(t, model.Explore(model.Nap{Messages: [2]int{1, 1}, Kills: kills(2)}.Model(), limit))
}

func TestNapMutations(t *testing.T) {
	t.Parallel()
	for bug, kills := range map[string]int{
		model.NapNoLook: 0, model.NapLate: 0, model.NapBlind: 0, model.NapDeaf: 0, model.NapOwnOnly: 0,
		model.NapShared: 0, model.NapNoReset: 0, model.NapNoRouse: 0, model.NapUnaware: 0,
		model.NapHeir: 1, model.NapForever: 1,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Nap{Messages: [2]int{1, 1}, Kills: kills,
				Ends: bug == model.NapUnaware, Bug: bug}.Model(), limit))
		})
	}
}
