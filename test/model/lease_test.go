package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestLease(t *testing.T) {
	t.Parallel()
	for _, c := range []model.Lease{
		{Consumers: 2, Before: 2, Puts: 2, Returns: 1, Gets: true, Kills: kills(1)},
		{Consumers: 2, Before: 2, Puts: 2, Returns: 2, Kills: kills(1)},
		{Consumers: 2, Before: 2, Puts: 2, Returns: 1, Leaves: true, Kills: kills(1)},
		{Consumers: 3, Before: 2, Puts: 2, Returns: 1},
		{Consumers: 2, Before: 1, Puts: 1, Returns: 0, Kills: kills(2)},
		{Consumers: 1, Before: 2, Puts: 3, Returns: 1, Kills: kills(1)},
		{Consumers: 2, Before: 2, Puts: 3, Returns: 1},
	} {
		holds(t, model.Explore(c.Model(), limit))
	}
}

func TestLeaseMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.LeaseCountFirst, model.LeaseOnce, model.LeaseMarkAll, model.LeaseFlagLate, model.LeaseOpen,
		model.LeaseBehind, model.LeaseAckSilent, model.LeaseReturnSilent, model.LeaseNewFirst,
		model.LeaseOverwrite, model.LeaseForgotten, model.LeaseDropped, model.LeaseUncounted,
		model.LeaseReapCount, model.LeaseSeat, model.LeaseAll, model.LeaseUndone,
	} {
		t.Run(bug, func(t *testing.T) {
			c := model.Lease{Consumers: 2, Before: 2, Puts: 2, Returns: 1, Kills: 1, Bug: bug}
			switch bug {
			case model.LeaseReturnSilent: // otherwise the consumer takes the message itself
				c.Leaves = true
			case model.LeaseOverwrite: // needs a second lap
				c.Puts = 3
			}
			fails(t, model.Explore(c.Model(), limit))
		})
	}
}
