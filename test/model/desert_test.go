package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestDesert(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.Desert{Kills: kills(3), Reapers: 2}.Model(), limit))
}

func TestDesert_Mutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.PutLooksOnce, model.EarlyLook, model.EarlyDrain, model.KeepsUnread, model.ReaperNoDesert,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Desert{Kills: 1, Reapers: 1, Bug: bug}.Model(), limit))
		})
	}
}
