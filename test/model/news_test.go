package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestNews(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.News{Stores: [2]int{2, 1}, Loads: [2]int{1, 1}}.Model(), limit))
	holds(t, model.Explore(model.News{Stores: [2]int{2, 2}, Loads: [2]int{1, 0}}.Model(), limit))
	holds(t, model.Explore(model.News{Stores: [2]int{1, 1}, Loads: [2]int{1, 1}, Kills: kills(2)}.Model(), limit))
}

func TestNewsMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.NewsOnce, model.NewsTail, model.NewsUp, model.NewsGreedy, model.NewsFirst, model.NewsUnlocked,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.News{Stores: [2]int{2, 1}, Loads: [2]int{1, 1}, Kills: 1,
				Bug: bug}.Model(), limit))
		})
	}
}
