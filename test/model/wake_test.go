package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestWake(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.Wake{Messages: [2]int{1, 1}, Kills: kills(1)}.Model(), limit))
	holds(t, model.Explore(model.Wake{Messages: [2]int{1}, Stops: 1}.Model(), limit))
}

func TestWakeMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.NoLook, model.NoPassOn, model.NoPassOnFound, model.NoPassOnIdle, model.NoBitAgain,
		model.NoReaperWake, model.WakeFirst, model.BitFirst, model.FreeBeforeWake,
		model.NoRewake,
	} {
		t.Run(bug, func(t *testing.T) {
			w := model.Wake{Messages: [2]int{1, 1}, Bug: bug}
			switch bug {
			case model.NoRewake:
				w.Stops = 1
			case model.NoReaperWake, model.WakeFirst:
				w.Kills = 1
			case model.FreeBeforeWake:
				w.Kills = 2
			}
			fails(t, model.Explore(w.Model(), limit))
		})
	}
}

// stamped: every participant stamps both words, so that one bit in the bitmap is for either.
var stamped = [3][]uint8{{0, 1, 0}, {1, 0, 1}, {0, 0, 1}}

func TestXOWait(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.XOWait{Words: stamped, Kills: kills(2)}.Model(), limit))
}

func TestXOWaitMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{model.WaitBitFirst, model.BlindWait, model.TrustWait, model.ClearQuiet,
		model.NoRegister, model.XOReaperMute} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.XOWait{Words: stamped, Kills: 1, Bug: bug}.Model(), limit))
		})
	}
}
