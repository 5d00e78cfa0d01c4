package dist

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/ipc"
)

// blame finds the ranks for which a turn did not end.
func (g *Group) blame(c *call, err error) error {
	if errors.Is(err, ipc.ErrClosed) {
		return ErrClosed
	}
	if pid, e := g.ranks.At(g.Rank()); e != nil {
		return errors.Join(err, e)
	} else if pid < 0 { // our own Close
		return ErrClosed
	}
	if e := errors.Join(g.ranks.Set(g.stage.size+g.Rank(), letDown), g.life.Abort()); e != nil {
		return errors.Join(err, e)
	}
	// Deaths are looked at first: a rank that leaves and ends meanwhile is not one of the dead.
	dead, err := g.dead(err)
	state := make([]int64, 2*g.stage.size)
	if e := g.ranks.Read(0, state); e != nil {
		return errors.Join(err, e)
	}
	pids, turns := state[:g.stage.size], state[g.stage.size:]
	e := &RankError{Call: string(c.text), Err: err}
	if len(dead) > 0 {
		e.Ranks = g.where(func(r int) bool { return slices.Contains(dead, int(pids[r])) })
		if e.Ranks == nil { // the dead was to be one of those as which nobody has joined
			e.Ranks = g.where(func(r int) bool { return pids[r] == 0 })
		}
		return e
	}
	if e.Ranks = g.where(func(r int) bool { return pids[r] < 0 && turns[r] != letDown }); e.Ranks != nil {
		e.Err = fmt.Errorf("%w: %w", ErrLeft, err)
		return e
	}
	e.Ranks = g.where(func(r int) bool { return turns[r] <= g.turns })
	return e
}

// letDown stands in the place of the turn of a rank whose call has failed: it had come, and if it
// leaves now that is no reason for anything.
const letDown = math.MaxInt64

// dead returns the processes of the group that have died, and err, which says so if there are any.
// The end of a context, which may be the first that a rank hears of a death, says less.
func (g *Group) dead(err error) (pids []int, _ error) {
	dead := g.barrier.Dead()
	var known *shm.PeerError
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

// where returns the ranks of which is returns true.
func (g *Group) where(is func(rank int) bool) (found []int) {
	for r := range g.stage.size {
		if is(r) {
			found = append(found, r)
		}
	}
	return slices.Clip(found)
}
