package dist

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The tags of the letters of a monitored barrier.
const (
	tagHere    = -2
	tagVerdict = -3
)

// A verdict is the result of a monitored barrier, which rank 0 sends to the others.
type verdict struct {
	Turn    int
	Missing []int
	Err     error
}

// MonitoredBarrier is a [Group.Barrier] that does not break the group if ranks do not come: torch's
// monitored_barrier with wait_all_ranks. Rank 0 waits at most timeout for the others and then tells
// all ranks which ones are missing. The ranks that came get the same [*RankError], which names the
// missing ranks and wraps [context.DeadlineExceeded], [ErrLeft] or a *shm.PeerError. A rank that
// comes later gets the error at once. If rank 0 does not come, the others get an error that names
// it after twice the timeout. After an error the ranks may continue and call MonitoredBarrier
// again.
//
// Use MonitoredBarrier to find a rank that hangs or is in another call. It is slower than Barrier.
func (g *Group) MonitoredBarrier(ctx context.Context, timeout time.Duration) error {
	c, err := g.beginCall(ctx, "monitored_barrier", timeout.String())
	if err != nil {
		return err
	}
	defer g.endCall()
	g.startWatchman()
	g.monitored++
	v := verdict{Turn: g.monitored}
	if g.Rank() == 0 {
		v = g.collectReports(ctx, string(c.text), timeout)
	} else if v, err = g.reportToLead(ctx, string(c.text), timeout); err != nil {
		return err
	}
	if len(v.Missing) == 0 {
		return nil
	}
	return &RankError{Call: string(c.text), Ranks: v.Missing, Err: v.Err}
}

// collectReports, in rank 0, waits up to timeout for the other ranks, sends them the verdict and
// returns it.
func (g *Group) collectReports(ctx context.Context, what string, timeout time.Duration) verdict {
	v := verdict{Turn: g.monitored}
	limit, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for r := 1; r < g.size; r++ {
		_, err := turnLetter(limit, g, what, &wanted{from: r, tag: tagHere}, func(turn int) int { return turn })
		if err == nil {
			continue
		}
		v.Missing = append(v.Missing, r)
		if v.Err == nil || errors.Is(v.Err, context.DeadlineExceeded) { // a death is more specific
			v.Err = missingReason(err, timeout)
		}
	}
	for r := 1; r < g.size; r++ {
		if err := sendNow(g, r, tagVerdict, v); err != nil && len(v.Missing) == 0 {
			v.Missing, v.Err = []int{r}, err
		}
	}
	return v
}

// missingReason returns the reason why a rank is missing, given the error of the receive of its
// report.
func missingReason(err error, timeout time.Duration) error {
	if e := new(RankError); errors.As(err, &e) {
		err = e.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("did not join the call within %v: %w", timeout, context.DeadlineExceeded)
	}
	return err
}

// reportToLead, in the other ranks, reports to rank 0 and returns its verdict. It waits up to
// twice the timeout.
func (g *Group) reportToLead(ctx context.Context, what string, timeout time.Duration) (verdict, error) {
	limit, cancel := context.WithTimeout(ctx, 2*timeout)
	defer cancel()
	p, done, err := packValue(g.monitored, g.far != nil)
	if err != nil {
		return verdict{}, err
	}
	at := g.box.lines[0].takeTicket()
	err = g.sendInOrder(limit, what, 0, tagHere, at, func() (letter, func(bool), error) {
		return letter{value: p}, done, nil
	})
	at.release()
	if err != nil {
		return verdict{}, err
	}
	return turnLetter(limit, g, what, &wanted{from: 0, tag: tagVerdict}, func(v verdict) int { return v.Turn })
}

// turnLetter receives a letter of this monitored barrier from the source and with the tag of
// from. It discards letters of earlier barriers. turn returns the number of the barrier from the
// value of a letter.
func turnLetter[T any](ctx context.Context, g *Group, what string, from *wanted, turn func(T) int) (v T, err error) {
	for {
		w := *from
		l, err := g.expectLetter(&w)(ctx, what)
		if err != nil {
			return v, err
		}
		if v, err = openLetter[T](l); err != nil || turn(v) >= g.monitored {
			return v, err
		}
	}
}

// sendNow sends a value without blocking. It returns ipc.ErrFull if the inbox of dst is full.
func sendNow[T any](g *Group, dst, tag int, v T) error {
	p, done, err := packValue(v, g.far != nil)
	if err != nil {
		return err
	}
	err = g.deliverLetter(context.Background(), dst, letter{from: g.Rank(), tag: tag, value: p}, true)
	done(err == nil)
	return err
}
