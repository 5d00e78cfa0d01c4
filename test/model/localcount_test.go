package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestLocalCount(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.LocalCount{}.Model(), limit))
}

func TestLocalCountMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{model.CountUnlocked, model.CountLate, model.UnlockEarly, model.ClearAny,
		model.LastQuiet, model.OwnUnread} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.LocalCount{Bug: bug}.Model(), limit))
		})
	}
}
