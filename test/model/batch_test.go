package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestBatch(t *testing.T) {
	t.Parallel()
	for _, c := range []model.Batch{
		{Slots: 4, Puts: [2]int{4, 2}, Most: [2]int{4, 4}, Kills: kills(1)},
		{Slots: 2, Puts: [2]int{4, 2}, Most: [2]int{2, 2}, Kills: kills(2)},
		{Slots: 2, Puts: [2]int{4, 1}, Most: [2]int{2, 1}, Kills: kills(1)},
		{Slots: 4, Puts: [2]int{3, 2}, Most: [2]int{1, 2}, Kills: kills(1)},
	} {
		holds(t, model.Explore(c.Model(), limit))
	}
}

func TestBatchMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.BatchTail, model.BatchHead, model.BatchBlind, model.BatchFirst, model.BatchBack, model.BatchHole,
		model.BatchHoles, model.BatchHalf, model.BatchUnread, model.BatchReadLast,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Batch{Slots: 2, Puts: [2]int{4, 2}, Most: [2]int{2, 2}, Kills: 2,
				Bug: bug}.Model(), limit))
		})
	}
}
