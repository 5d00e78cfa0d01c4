package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestWatch(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.Watch{Watchers: 1, Kills: kills(2), Reaps: 2}.Model(), limit))
	holds(t, model.Explore(model.Watch{Watchers: 2}.Model(), limit))
}

func TestWatchMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.AbortQuiet, model.LeaveLate, model.WatchBlind, model.WatchOnce, model.CensusLate,
		model.WakeFirstOnly, model.ReapQuiet, model.ReapWakesFirst,
		model.ReapFreesFirst,
	} {
		t.Run(bug, func(t *testing.T) {
			c := model.Watch{Watchers: 1, Kills: 1, Reaps: 1, Bug: bug}
			if bug == model.WakeFirstOnly {
				c.Watchers, c.Kills = 2, 0
			}
			fails(t, model.Explore(c.Model(), limit))
		})
	}
}
