package dist

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
)

// callError returns the error of a call that failed in a turn because of err: [ErrClosed] if
// this process has closed the group, else a [*RankError] that names the ranks at fault. They are
// the ranks that died, else those that left, else those that did not reach the turn. callError
// also wakes the ranks that watch the group for changes.
func (g *Group) callError(c *call, err error) error {
	if errors.Is(err, ipc.ErrClosed) {
		return ErrClosed
	}
	if pid, e := g.ranks.At(g.Rank()); e != nil {
		return errors.Join(err, e)
	} else if pid < 0 { // closed by this process
		return ErrClosed
	}
	if e := errors.Join(g.ranks.Set(g.stage.size+g.Rank(), letDown), g.life.Abort()); e != nil {
		return errors.Join(err, e)
	}
	// Check for deaths first: a rank that leaves and then exits is not dead.
	dead, err := g.findDead(err)
	state := make([]int64, 2*g.stage.size)
	if e := g.ranks.Read(0, state); e != nil {
		return errors.Join(err, e)
	}
	pids, turns := state[:g.stage.size], state[g.stage.size:]
	e := &RankError{Call: string(c.text), Err: err}
	if len(dead) > 0 {
		e.Ranks = g.filterRanks(func(r int) bool { return slices.Contains(dead, int(pids[r])) })
		if e.Ranks == nil { // the dead process had not joined: it may have been any unjoined rank
			e.Ranks = g.filterRanks(func(r int) bool { return pids[r] == 0 })
		}
		return e
	}
	if e.Ranks = g.filterRanks(func(r int) bool { return pids[r] < 0 && turns[r] != letDown }); e.Ranks != nil {
		e.Err = fmt.Errorf("%w: %w", ErrLeft, err)
		return e
	}
	e.Ranks = g.filterRanks(func(r int) bool { return turns[r] <= g.turns })
	return e
}

// letDown replaces the turn of a rank after its call failed. The rank had reached the turn, so
// other ranks must not blame it if it leaves now.
const letDown = math.MaxInt64

// findDead returns the PIDs of the group's processes that have died, and err. If there are any,
// the returned error also wraps a [*shm.PeerError], because the end of a context, often the
// first sign of a death, is less specific.
func (g *Group) findDead(err error) (pids []int, _ error) {
	dead := g.barrier.Dead()
	var known *arena.PeerError
	switch {
	case errors.As(err, &known):
		dead = append(dead, known)
	case len(dead) > 0:
		err = fmt.Errorf("%w: %w", dead[0], err)
	}
	for _, d := range dead {
		pids = append(pids, d.PID)
	}
	return pids, err
}

// filterRanks returns the ranks r with is(r) true.
func (g *Group) filterRanks(is func(rank int) bool) (found []int) {
	for r := range g.stage.size {
		if is(r) {
			found = append(found, r)
		}
	}
	return slices.Clip(found)
}
