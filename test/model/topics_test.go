package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestTopics(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.Topics{Messages: [2]int{2, 2}}.Model(), limit))
	holds(t, model.Explore(model.Topics{Messages: [2]int{1, 1}, Kills: kills(1)}.Model(), limit))
}

func TestTopicsMutations(t *testing.T) {
	t.Parallel()
	for bug, kills := range map[string]int{
		model.TopicTrust: 0, model.TopicNoRing: 0, model.TopicLate: 0, model.TopicEarly: 0, model.TopicClears: 0,
		model.TopicOwnOnly: 0, model.TopicMute: 1, model.TopicOneTopic: 1,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Topics{Messages: [2]int{2, 2}, Kills: kills, Bug: bug}.Model(), limit))
		})
	}
}
