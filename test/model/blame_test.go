package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestBlame(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.Blame{Kills: kills(2), Reapers: 2}.Model(), limit))
}

func TestBlame_Mutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.BlameAlone, model.BlameLate, model.NoTakeBack, model.LateTakeBack, model.CourierClears,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Blame{Kills: 2, Reapers: 1, Bug: bug}.Model(), limit))
		})
	}
}
