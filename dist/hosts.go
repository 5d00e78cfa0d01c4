package dist

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/dist/internal/collective"
	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Hosts] Ranks on several hosts, some of which share a host, can go two ways. A library moves
// bytes from rank to rank. Or the ranks of each host reduce, gather and broadcast in shared memory,
// and one rank of each host, its leader, makes the call of the library with the other leaders: then
// each host sends and gets the bytes once, however many ranks it has. The second way is a Comm
// about that of the library, so all that package dist does about calls is done about both. The ways
// are chosen by the length of a call, which the ranks have agreed on by then.
//
// A rank that waits in shared memory is woken when the group breaks. It learns of a death of its
// own host at once, and the others by its notice.

// hosts is the Comm of ranks that share memory with the others of their host.
type hosts struct {
	collective.Comm                 // of all ranks, for other calls and short ones
	local           near            // the ranks of this host, if there are several
	leaders         collective.Comm // of the first rank of each host; nil in the others
	of              []int           // the host of each rank
	ranks           [][]int         // of each host, in order
	least           int             // how long calls have to be
	sum, mine, all  scratch         // of the leader, for one call at a time
}

// longest returns how many ranks a host has at most.
func longest(hosts [][]int) (n int) {
	for _, ranks := range hosts {
		n = max(n, len(ranks))
	}
	return n
}

// inOrder reports whether all hosts have as many ranks, and the ranks of one come before those of
// the next.
func (h *hosts) inOrder() bool {
	at := 0
	for _, ranks := range h.ranks {
		if len(ranks) != len(h.ranks[0]) || ranks[0] != at || ranks[len(ranks)-1] != at+len(ranks)-1 {
			return false
		}
		at += len(ranks)
	}
	return true
}

func (h *hosts) host() int   { return h.of[h.Rank()] }
func (h *hosts) leads() bool { return h.leaders != nil }
func (h *hosts) alone() bool { return len(h.ranks[h.host()]) == 1 }

// by reports whether a call of so many bytes goes by hosts.
func (h *hosts) by(n int) bool { return n > 0 && n >= h.least }

// dtypeOfKind and opOf are what package dist calls what a library reduces.
var (
	dtypeOfKind = map[collective.Kind]tensor.DType{collective.Uint8: tensor.Uint8, collective.Int8: tensor.Int8,
		collective.Int16: tensor.Int16, collective.Int32: tensor.Int32, collective.Int64: tensor.Int64,
		collective.Float32: tensor.Float32, collective.Float64: tensor.Float64}
	opOf = map[collective.Op]Op{collective.Sum: Sum, collective.Max: Max, collective.Min: Min,
		collective.Prod: Prod, collective.BAnd: BAnd, collective.BOr: BOr, collective.BXor: BXor}
)

// here makes a call of the ranks of this host, from in to out.
func (h *hosts) here(in, out []byte, do func(ctx context.Context, c *call) error) error {
	return h.reduceHere(collective.Uint8, collective.Sum, in, out, do)
}

func (h *hosts) reduceHere(k collective.Kind, op collective.Op, in, out []byte,
	do func(ctx context.Context, c *call) error) error {
	if h.alone() {
		return nil
	}
	of := func(b []byte) vector { return vector{parts: []part{{bytes: b, size: len(b)}}, size: len(b)} }
	c := &call{agreed: true, dtype: dtypeOfKind[k], op: opOf[op], in: of(in), out: of(out)}
	return h.blamed(do(context.Background(), c)) // which the end of the group ends
}

// blamed has an error name ranks of the group, and not those of the host.
func (h *hosts) blamed(err error) error {
	var e *RankError
	if !errors.As(err, &e) {
		return err
	}
	all := &RankError{Call: e.Call, Err: e.Err}
	for _, r := range e.Ranks {
		all.Ranks = append(all.Ranks, h.ranks[h.host()][r])
	}
	return all
}

// AllReduce has each host reduce, then the leaders, and then each host copy the result.
func (h *hosts) AllReduce(k collective.Kind, op collective.Op, b []byte) error {
	if !h.by(len(b)) {
		return h.Comm.AllReduce(k, op, b)
	}
	if err := h.reduceHere(k, op, b, b, h.toLeader); err != nil {
		return err
	}
	if h.leads() {
		if err := h.leaders.AllReduce(k, op, b); err != nil {
			return err
		}
	}
	return h.here(b, b, h.fromLeader)
}

func (h *hosts) toLeader(ctx context.Context, c *call) error   { return h.local.reduce(ctx, c, 0) }
func (h *hosts) fromLeader(ctx context.Context, c *call) error { return h.local.broadcast(ctx, c, 0) }

// Reduce has each host reduce, then the leaders, and then the leader of the root's host give the
// root the result.
func (h *hosts) Reduce(root int, k collective.Kind, op collective.Op, b []byte) error {
	if !h.by(len(b)) {
		return h.Comm.Reduce(root, k, op, b)
	}
	sum := b
	if h.Rank() != root && !h.alone() { // b stays as it is
		sum = h.sum.of(len(b))
	}
	if err := h.reduceHere(k, op, b, sum, h.toLeader); err != nil {
		return err
	}
	at := h.of[root]
	if h.leads() {
		if err := h.leaders.Reduce(at, k, op, sum); err != nil {
			return err
		}
	}
	if h.host() != at || h.ranks[at][0] == root {
		return nil
	}
	return h.here(sum, sum, h.fromLeader)
}

// Broadcast has the root's host copy, then the leaders, and then the other hosts. A root that leads
// begins with the leaders.
func (h *hosts) Broadcast(root int, b []byte) error {
	if !h.by(len(b)) {
		return h.Comm.Broadcast(root, b)
	}
	at, from := h.of[root], 0
	for h.ranks[at][from] != root {
		from++
	}
	first := h.host() == at && from > 0
	if first {
		err := h.here(b, b, func(ctx context.Context, c *call) error { return h.local.broadcast(ctx, c, from) })
		if err != nil {
			return err
		}
	}
	if h.leads() {
		if err := h.leaders.Broadcast(at, b); err != nil {
			return err
		}
	}
	if first {
		return nil
	}
	return h.here(b, b, h.fromLeader)
}

// AllGather has each host gather at its leader, then the leaders, and then each host copy all. What
// the leaders exchange is as long for each host as for the one with the most ranks.
func (h *hosts) AllGather(dst, src []byte) error {
	if !h.by(len(dst)) {
		return h.Comm.AllGather(dst, src)
	}
	n, most := len(src), longest(h.ranks)
	var mine []byte
	if h.leads() {
		mine = h.mine.of(most * n)
		if h.alone() {
			copy(mine, src)
		}
	}
	gather := func(ctx context.Context, c *call) error { return h.local.gather(ctx, c, 0) }
	if err := h.here(src, mine, gather); err != nil {
		return err
	}
	if h.leads() {
		all := dst
		if !h.inOrder() {
			all = h.all.of(len(h.ranks) * len(mine))
		}
		if err := h.leaders.AllGather(all, mine); err != nil {
			return err
		}
		if !h.inOrder() {
			for i, ranks := range h.ranks {
				for k, r := range ranks {
					copy(dst[r*n:][:n], all[(i*most+k)*n:])
				}
			}
		}
	}
	return h.here(dst, dst, h.fromLeader)
}

// abort wakes the ranks of this host that wait for each other.
func (h *hosts) abort() {
	if h != nil && !h.alone() {
		h.local.abort()
	}
}

// close leaves the ranks of this host. If the group is broken, calls that were left alone keep
// their memory, and the others are not told that this rank has left: that is not why.
func (h *hosts) close(broken bool) error {
	if h == nil || h.alone() {
		return nil
	}
	if broken {
		h.local.abort()
		return h.local.shut()
	}
	return h.local.Close()
}

// known reports whether an error of the ranks of this host says why: a death, or that a rank has
// left. Otherwise the reason may be a failure elsewhere, of which a notice tells.
func known(err error) bool {
	var dead *shm.PeerError
	return errors.As(err, &dead) || errors.Is(err, ErrLeft)
}
