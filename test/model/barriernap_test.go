package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestBarrierNap(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.BarrierNap{Turns: 3}.Model(), limit))
	holds(t, model.Explore(model.BarrierNap{Turns: 3, Kills: kills(2)}.Model(), limit))
}

func TestBarrierNapMutations(t *testing.T) {
	t.Parallel()
	for bug, kills := range map[string]int{
		model.BarrierNapUnsaid: 0, model.BarrierNapStale: 0, model.BarrierNapNoMatch: 0,
		model.BarrierNapOne: 0, model.BarrierNapFirst: 0, model.BarrierNapForever: 1,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.BarrierNap{Turns: 2, Kills: kills, Bug: bug}.Model(), limit))
		})
	}
}
