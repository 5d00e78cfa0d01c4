package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

func TestMutex(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.Mutex{Locks: 1, Kills: kills(2), Rejoins: 1}.Model(), limit))
	holds(t, model.Explore(model.Mutex{Locks: 2, Kills: kills(1)}.Model(), limit))
}

func TestMutexMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.SeatOnly, model.TakeFromLiving, model.NotTold, model.UnlockForgets, model.WithdrawFrees,
		model.LockNoLook, model.UnlockQuiet,
		model.LockNoPassOn, model.DeadBitsStay, model.LockReaperMute, model.WakeThenBits,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Mutex{Locks: 2, Kills: 2, Rejoins: rejoins(bug), Bug: bug}.Model(), limit))
		})
	}
}

// rejoins is for the mutation that needs a seat used again.
func rejoins(bug string) int {
	if bug == model.SeatOnly {
		return 1
	}
	return 0
}

func TestSemaphore(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.Semaphore{Permits: 1, Takes: 2, Kills: kills(2), Rejoins: 1}.Model(), limit))
	holds(t, model.Explore(model.Semaphore{Permits: 2, Takes: 2, Kills: kills(3), Rejoins: 2}.Model(), limit))
}

func TestSemaphoreMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.NoRedo, model.ShareFirst, model.BlindSettle, model.NoSettle, model.ForgetShare, model.NoOrphan,
		model.SettleLiving,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Semaphore{Permits: permits(bug), Takes: 2, Kills: 2, Rejoins: 1,
				Bug: bug}.Model(), limit))
		})
	}
}

// permits is for the mutation that needs one left.
func permits(bug string) int {
	if bug == model.ForgetShare {
		return 2
	}
	return 1
}

func TestCond(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.Cond{Takers: 2, Things: 2, Kills: kills(2), Ends: 1}.Model(), limit))
	holds(t, model.Explore(model.Cond{Takers: 3, Things: 2, Kills: kills(1)}.Model(), limit))
}

func TestCondMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.CondDeaf, model.CondNoHolder, model.UnshareEarly, model.ForgetFirst, model.NoForgo, model.ArriveLate,
		model.RepairQuiet, model.NotifyBlindly,
	} {
		t.Run(bug, func(t *testing.T) {
			takers, ends := 2, 1
			if bug == model.ForgetFirst || bug == model.NotifyBlindly { // one to die, one to settle, one to miss it
				takers, ends = 3, 0
			}
			fails(t, model.Explore(model.Cond{Takers: takers, Things: 2, Kills: 2, Ends: ends,
				Bug: bug}.Model(), limit))
		})
	}
}

func TestRWMutex(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.RWMutex{Writers: 1, Rounds: 3, Kills: kills(3), Rejoins: 2}.Model(), limit))
	holds(t, model.Explore(model.RWMutex{Writers: 2, Rounds: 3, Kills: kills(3), Rejoins: 2}.Model(), limit))
}

func TestRWMutexMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.LookFirst, model.DrainFirst, model.DrainDead, model.DrainSuspected, model.ReadTorn,
		model.KeepShare, model.ShareOfSeat, model.RWNotTold,
		model.RWGiveUpFrees,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.RWMutex{Writers: 2, Rounds: 2, Kills: 2, Rejoins: 1, Bug: bug}.Model(), limit))
		})
	}
}

func TestBarrier(t *testing.T) {
	t.Parallel()
	holds(t, model.Explore(model.Barrier{Parties: 2, Rounds: 2, Kills: kills(1), Ends: 1}.Model(), limit))
	holds(t, model.Explore(model.Barrier{Parties: 2, Rounds: 1, Kills: kills(1), Rejoins: 1, Resets: 1}.Model(), limit))
	holds(t, model.Explore(model.Barrier{Parties: 3, Rounds: 2, Kills: kills(1), Ends: 1, Resets: 1}.Model(), limit))
	holds(t, model.Explore(model.Barrier{Parties: 2, Rounds: 1, Kills: kills(1), Resets: 1, Early: 1}.Model(), limit))
}

func TestBarrierMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{
		model.BarrierDeaf, model.JoinForgets, model.AbortOnce, model.NoHistory, model.EndBlind,
		model.FailQuiet, model.Overrun, model.ResetInTurn,
		model.ActLate, model.EarlyQuiet,
	} {
		t.Run(bug, func(t *testing.T) {
			b := model.Barrier{Parties: 2, Rounds: 2, Kills: 1, Resets: 1, Bug: bug}
			switch bug {
			case model.JoinForgets, model.AbortOnce: // somebody comes after the death
				b.Rounds, b.Rejoins, b.Resets = 1, 1, 0
			case model.EndBlind, model.FailQuiet:
				b.Ends = 1
			case model.EarlyQuiet:
				b.Early = 1
			}
			fails(t, model.Explore(b.Model(), limit))
		})
	}
}
