package model_test

import (
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

// A trace ends in the step that breaks the rule and says it by name.
func TestTraceNamesTheSteps(t *testing.T) {
	t.Parallel()
	r := model.Explore(model.Lifetime{Programs: hand, Kills: 1, Bug: model.AlwaysUndo}.Model(), limit)
	for _, want := range []string{"use after free", "pc putFull→putClear", "life alive→killed",
		"kind kPut→nobody"} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("no %q in\n%v", want, r)
		}
	}
}

func TestLimitStopsAnExploration(t *testing.T) {
	t.Parallel()
	r := model.Explore(model.Lifetime{Programs: hand}.Model(), 100)
	if r.Complete || r.Err != nil || r.States < 100 || r.States > 200 {
		t.Error(r)
	}
}
