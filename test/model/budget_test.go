package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

var resize = [2][]model.Resize{
	{{Block: 0, Pages: 2}, {Block: 1, Pages: 0}, {Block: 0, Pages: 1}, {Block: 1, Pages: 2}},
	{{Block: 1, Pages: 1}, {Block: 0, Pages: 0}, {Block: 1, Pages: 2}},
}

func TestBudget(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.Budget{Programs: resize, Kills: kills(3)}.Model(), limit))
}

func TestBudgetMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.PhaseEarly, model.CommittedLate, model.NoUndoPunch, model.SubUnstamped, model.PhaseLeft,
		model.ReaperStamp,
		model.PhaseLate, model.AddForgotten, model.SubForgotten, model.TwoReapers, model.CommitUnbacked,
		model.OweFirst, model.PayerForgotten, model.PaidTwice, model.PassUncharged,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Budget{Programs: resize, Kills: 2, Bug: bug}.Model(), limit))
		})
	}
}
