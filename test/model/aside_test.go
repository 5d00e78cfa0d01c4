package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestAside(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.Aside{Kills: kills(3)}.Model(), limit))
}

func TestAside_Mutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.TriesItsOwn, model.LeavesFree, model.MainOnly, model.TakesBack, model.WaitsOn,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Aside{Kills: 3, Bug: bug}.Model(), limit))
		})
	}
}
