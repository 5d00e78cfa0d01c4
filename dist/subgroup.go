package dist

import (
	"context"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/dist/internal/collective"
)

// NewGroup creates a group of the given ranks of g, or of all ranks if none are given: torch's
// new_group. All ranks of g must make the call with the same ranks, whether they are members or
// not, and must create all groups in the same order. Members are numbered by their rank in g,
// regardless of the order of ranks.
//
// Members get a group that they have already joined. They may use it beside g, and must close it.
// Other ranks get a Group with Rank -1; its calls return [ErrRank]. Their deaths do not break the
// new group. NewGroup returns [ErrTensor] if a rank is out of range or given twice.
func (g *Group) NewGroup(ctx context.Context, ranks ...int) (sub *Group, err error) {
	members := slices.Sorted(slices.Values(ranks))
	if len(ranks) == 0 {
		members = g.allRanks()
	}
	c, err := g.beginCall(ctx, "new_group", fmt.Sprint(members))
	if err != nil {
		return nil, err
	}
	defer g.endCall()
	if len(slices.Compact(slices.Clone(members))) < len(members) || members[0] < 0 ||
		members[len(members)-1] >= g.size {
		c.recordProblem("want each of the ranks 0 to %d at most once", g.size-1)
	}
	if g.far != nil {
		return g.splitFar(ctx, c, members)
	}
	x := &exchange[*Group]{g: g, c: c, ctx: ctx}
	err = g.runBetweenTurns(ctx, c, func() (err error) {
		sub, err = foundGroup(x, members)
		return err
	})
	if err != nil {
		return nil, closeGroup(sub, err)
	}
	return sub, nil
}

// closeGroup closes g, which may be nil, and returns err.
func closeGroup(g *Group, err error) error {
	if g != nil {
		g.Close()
	}
	return err
}

func (g *Group) allRanks() (ranks []int) {
	for r := range g.Size() {
		ranks = append(ranks, r)
	}
	return ranks
}

// foundGroup creates the group in its first member and sends it to the others. Each member joins
// it. Other ranks get the result of [Group.nonMember]. The caller must close the Group, which
// may be not nil beside an error.
func foundGroup(x *exchange[*Group], members []int) (*Group, error) {
	rank := slices.Index(members, x.g.Rank())
	var sub *Group
	var err error
	switch rank {
	case -1:
		return x.g.nonMember(members), nil
	case 0:
		sub, err = createAndSend(x, members)
	default:
		sub, err = x.recvFrom(members[0])
	}
	if err == nil {
		err = sub.Join(rank)
	}
	return sub, err
}

// createAndSend creates the group and sends it to the other members; it does not join. The
// caller must close the Group, which may be not nil beside an error.
func createAndSend(x *exchange[*Group], members []int) (*Group, error) {
	sub, err := NewGroup(len(members))
	if err != nil {
		return nil, err
	}
	p, done, err := packValue(sub, false)
	if err != nil {
		return sub, err
	}
	defer done(true)
	for _, r := range members[1:] {
		if err := x.sendTo(r, p); err != nil {
			return sub, err
		}
	}
	return sub, nil
}

// nonMember returns the Group of a rank that is not among members. Its calls return [ErrRank].
func (g *Group) nonMember(members []int) *Group {
	outside := fmt.Errorf("%w: rank %d is not a member of the group of ranks %v", ErrRank, g.Rank(), members)
	return &Group{member: &member{size: len(members), outside: outside}}
}

// splitFar creates the group by splitting the library's communicator; the members have joined
// it. Other ranks get the result of [Group.nonMember].
func (g *Group) splitFar(ctx context.Context, c *call, members []int) (*Group, error) {
	if err := g.awaitTurn(ctx, c); err != nil {
		return nil, err
	}
	is := slices.Contains(members, g.Rank())
	made := make(chan collective.Comm, 1)
	err := g.runMove(ctx, c, func(*vector, *vector) error {
		comm, err := g.far.comm.Split(is)
		made <- comm
		return err
	})
	if err != nil {
		return nil, err
	}
	if !is {
		return g.nonMember(members), nil
	}
	return newFarGroup(newFar(<-made, g.far.job)), nil
}
