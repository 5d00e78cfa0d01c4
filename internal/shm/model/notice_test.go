package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/shm/model"
)

var (
	joins  = model.Notice{Join: true}
	leaves = model.Notice{Leave: true}
	moves  = model.Notice{Join: true, Leave: true}
)

func TestNotice(t *testing.T) {
	for name, c := range map[string]struct {
		model.Notice
		kills int
	}{"joins": {joins, 3}, "leaves": {leaves, 3}, "joins and leaves": {moves, 2}, "dies": {kills: 3}} {
		t.Run(name, func(t *testing.T) {
			c.Kills = kills(c.kills)
			holds(t, model.Explore(c.Model(), limit))
		})
	}
}

func TestNoticeMutations(t *testing.T) {
	for bug, c := range map[string]model.Notice{
		model.NoDeathEpochCheck: moves,
		model.DeathEpochLate:    moves,
		model.NoWalk:            moves,
		model.RingLate:          joins,
		model.RingOne:           moves,
		model.LeaveQuiet:        leaves,
		model.LeaveUntold:       moves,
		model.LeaveHolding:      moves,
		model.NoSteal:           leaves,
		model.StealLiving:       leaves,
		model.StopAtDead:        moves,
		model.JoiningHidden:     joins,
		model.JoinLocked:        joins,
		model.NumberTrusted:     joins,
	} {
		t.Run(bug, func(t *testing.T) {
			c.Kills, c.Bug = 2, bug
			fails(t, model.Explore(c.Model(), limit))
		})
	}
}
