package model_test

import (
	"cmp"
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

var (
	joins  = model.Notice{Join: true}
	leaves = model.Notice{Leave: 3}
	moves  = model.Notice{Join: true, Leave: 1}
	lonely = model.Notice{One: true, Join: true, Leave: 3}
	doubts = model.Notice{Blind: true, Doubt: true}
)

func TestNotice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model.Notice
		kills int
	}{
		"joins": {joins, 2}, "leaves": {leaves, 3}, "joins and leaves": {moves, 1}, "dies": {kills: 3},
		"one watcher":      {lonely, 1},
		"stops":            {model.Notice{Stops: 1}, 2},
		"joins and stops":  {model.Notice{Join: true, Stops: 1}, 1},
		"doubts":           {doubts, 2},
		"leaves and stops": {model.Notice{Leave: 1, Stops: 1, Doubt: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c.Kills = kills(c.kills)
			holds(t, model.Explore(c.Model(), limit))
		})
	}
}

func TestNoticeMutations(t *testing.T) {
	t.Parallel()
	for bug, c := range map[string]model.Notice{
		model.NoDeathEpochCheck: lonely,
		model.DeathEpochLate:    lonely,
		model.NoWalk:            moves,
		model.WakeLate:          joins,
		model.WakeOne:           {Join: true, Stops: 1, Kills: 1},
		model.LeaveDeaths:       moves,
		model.LeaveQuiet:        {One: true, Leave: 3},
		model.LeaveUntold:       moves,
		model.LeaveHolding:      moves,
		model.NoSteal:           leaves,
		model.StealLiving:       leaves,
		model.StopAtDead:        moves,
		model.JoiningHidden:     joins,
		model.JoinLocked:        joins,
		model.NumberTrusted:     joins,
		model.WatchOne:          {Stops: 1},
		model.DoubtLess:         doubts,
		model.DoubtOnce:         {Leave: 1, Stops: 1, Doubt: true},
	} {
		t.Run(bug, func(t *testing.T) {
			c.Kills, c.Bug = cmp.Or(c.Kills, 2), bug
			fails(t, model.Explore(c.Model(), limit))
		})
	}
}
