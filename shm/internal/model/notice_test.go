package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/shm/internal/model"
)

var (
	joins  = model.Notice{Join: true}
	leaves = model.Notice{Leave: true}
	moves  = model.Notice{Join: true, Leave: true}
)

func TestNotice(t *testing.T) {
	for name, c := range map[string]model.Notice{"joins": joins, "leaves": leaves, "joins and leaves": moves, "dies": {}} {
		t.Run(name, func(t *testing.T) {
			c.Kills = kills(3)
			holds(t, model.Explore(c.Model(), limit))
		})
	}
}

func TestNoticeMutations(t *testing.T) {
	for bug, c := range map[string]model.Notice{
		model.NoObituaryCheck: moves,
		model.ObituaryLate:    moves,
		model.NoWalk:          moves,
		model.RingLate:        joins,
		model.LeaveQuiet:      leaves,
		model.NoSteal:         leaves,
		model.StopAtDead:      moves,
		model.RingOnce:        moves,
		model.JoiningHidden:   joins,
		model.JoinLocked:      joins,
		model.LeaveLocked:     leaves,
		model.ReapSelfOnly:    leaves,
	} {
		t.Run(bug, func(t *testing.T) {
			c.Kills, c.Bug = 3, bug
			fails(t, model.Explore(c.Model(), limit))
		})
	}
}
