package dist

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/dist/internal/collective"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Hosts] If several ranks share a host, a collective call has two algorithms. In the flat one
// the library moves bytes from rank to rank. In the hierarchical one the ranks of each host reduce,
// gather and broadcast in shared memory, and one rank of each host, its leader, makes the library
// call with the other leaders. Each host then sends and receives the bytes once, regardless of its
// number of ranks. The hierarchical algorithm is a Comm that wraps the library's, so the rest of
// package dist treats both alike. The length of a call selects the algorithm; the ranks have agreed
// on it by then.
//
// A rank that waits in shared memory is woken when the group breaks. It learns of deaths on its own
// host at once. Notices tell it about the ranks of other hosts.

// hosts is the Comm for hierarchical calls.
type hosts struct {
	collective.Comm                 // all ranks, for flat calls
	local           near            // the ranks of this host, if there are several
	leaders         collective.Comm // the leaders; nil in other ranks
	of              []int           // rank to host
	ranks           [][]int         // host to its ranks, ascending
	least           int             // minimum length in bytes of a hierarchical call
	sum, mine, all  scratch         // buffers of the leader, reused by each call
}

// mostRanks returns the largest number of ranks of a host.
func mostRanks(hosts [][]int) (n int) {
	for _, ranks := range hosts {
		n = max(n, len(ranks))
	}
	return n
}

// isInOrder reports whether all hosts have the same number of ranks, and each host's ranks are
// consecutive and follow the ranks of the host before it.
func (h *hosts) isInOrder() bool {
	at := 0
	for _, ranks := range h.ranks {
		if len(ranks) != len(h.ranks[0]) || ranks[0] != at || ranks[len(ranks)-1] != at+len(ranks)-1 {
			return false
		}
		at += len(ranks)
	}
	return true
}

func (h *hosts) hostIndex() int { return h.of[h.Rank()] }
func (h *hosts) isLeader() bool { return h.leaders != nil }
func (h *hosts) isAlone() bool  { return len(h.ranks[h.hostIndex()]) == 1 }

// isHierarchical reports whether a call on n bytes is hierarchical; see Note [Hosts]. Otherwise
// all ranks make it through the library alone.
func (h *hosts) isHierarchical(n int) bool { return n > 0 && n >= h.least }

// dtypeOfKind and opOf map the library's types and reductions to package dist's.
var (
	dtypeOfKind = map[collective.Kind]tensor.DType{collective.Uint8: tensor.Uint8, collective.Int8: tensor.Int8,
		collective.Int16: tensor.Int16, collective.Int32: tensor.Int32, collective.Int64: tensor.Int64,
		collective.Float32: tensor.Float32, collective.Float64: tensor.Float64}
	opOf = map[collective.Op]Op{collective.Sum: Sum, collective.Max: Max, collective.Min: Min,
		collective.Prod: Prod, collective.BAnd: BAnd, collective.BOr: BOr, collective.BXor: BXor}
)

// runOnHost calls do with a call among the ranks of this host that has input in and output out.
// It returns the error of do, with the ranks of the group in a [RankError]. It does nothing if
// this rank is alone on its host.
func (h *hosts) runOnHost(in, out []byte, do func(ctx context.Context, c *call) error) error {
	return h.reduceOnHost(collective.Uint8, collective.Sum, in, out, do)
}

func (h *hosts) reduceOnHost(k collective.Kind, op collective.Op, in, out []byte,
	do func(ctx context.Context, c *call) error) error {
	if h.isAlone() {
		return nil
	}
	of := func(b []byte) vector { return vector{parts: []part{{bytes: b, size: len(b)}}, size: len(b)} }
	c := &call{agreed: true, dtype: dtypeOfKind[k], op: opOf[op], in: of(in), out: of(out)}
	return h.translateRanks(do(context.Background(), c)) // not canceled by a context: abortHost ends it
}

// translateRanks translates the ranks in a [RankError] from ranks of this host to ranks of the
// group. It returns other errors unchanged.
func (h *hosts) translateRanks(err error) error {
	var e *RankError
	if !errors.As(err, &e) {
		return err
	}
	all := &RankError{Call: e.Call, Err: e.Err}
	for _, r := range e.Ranks {
		all.Ranks = append(all.Ranks, h.ranks[h.hostIndex()][r])
	}
	return all
}

// AllReduce reduces on each host, then among the leaders, and then broadcasts on each host.
func (h *hosts) AllReduce(k collective.Kind, op collective.Op, b []byte) error {
	if !h.isHierarchical(len(b)) {
		return h.Comm.AllReduce(k, op, b)
	}
	if err := h.reduceOnHost(k, op, b, b, h.reduceToLeader); err != nil {
		return err
	}
	if h.isLeader() {
		if err := h.leaders.AllReduce(k, op, b); err != nil {
			return err
		}
	}
	return h.runOnHost(b, b, h.broadcastFromLeader)
}

func (h *hosts) reduceToLeader(ctx context.Context, c *call) error { return h.local.reduce(ctx, c, 0) }
func (h *hosts) broadcastFromLeader(ctx context.Context, c *call) error {
	return h.local.broadcast(ctx, c, 0)
}

// Reduce reduces on each host, then among the leaders to the leader of the root's host, which then
// broadcasts the result on its host.
func (h *hosts) Reduce(root int, k collective.Kind, op collective.Op, b []byte) error {
	if !h.isHierarchical(len(b)) {
		return h.Comm.Reduce(root, k, op, b)
	}
	sum := b
	if h.Rank() != root && !h.isAlone() { // b must stay unchanged
		sum = h.sum.grow(len(b))
	}
	if err := h.reduceOnHost(k, op, b, sum, h.reduceToLeader); err != nil {
		return err
	}
	at := h.of[root]
	if h.isLeader() {
		if err := h.leaders.Reduce(at, k, op, sum); err != nil {
			return err
		}
	}
	if h.hostIndex() != at || h.ranks[at][0] == root {
		return nil
	}
	return h.runOnHost(sum, sum, h.broadcastFromLeader)
}

// Broadcast broadcasts on the root's host, then among the leaders, and then on the other hosts. It
// skips the first step if the root is a leader.
func (h *hosts) Broadcast(root int, b []byte) error {
	if !h.isHierarchical(len(b)) {
		return h.Comm.Broadcast(root, b)
	}
	at, from := h.of[root], 0
	for h.ranks[at][from] != root {
		from++
	}
	first := h.hostIndex() == at && from > 0
	if first {
		err := h.runOnHost(b, b, func(ctx context.Context, c *call) error { return h.local.broadcast(ctx, c, from) })
		if err != nil {
			return err
		}
	}
	if h.isLeader() {
		if err := h.leaders.Broadcast(at, b); err != nil {
			return err
		}
	}
	if first {
		return nil
	}
	return h.runOnHost(b, b, h.broadcastFromLeader)
}

// AllGather gathers on each host, then among the leaders, and then broadcasts on each host. Leaders
// exchange blocks of equal length, padded to the block of the host with the most ranks.
func (h *hosts) AllGather(dst, src []byte) error {
	if !h.isHierarchical(len(dst)) {
		return h.Comm.AllGather(dst, src)
	}
	n, most := len(src), mostRanks(h.ranks)
	var mine []byte
	if h.isLeader() {
		mine = h.mine.grow(most * n)
		if h.isAlone() {
			copy(mine, src)
		}
	}
	gather := func(ctx context.Context, c *call) error { return h.local.gather(ctx, c, 0) }
	if err := h.runOnHost(src, mine, gather); err != nil {
		return err
	}
	if h.isLeader() {
		all := dst
		if !h.isInOrder() {
			all = h.all.grow(len(h.ranks) * len(mine))
		}
		if err := h.leaders.AllGather(all, mine); err != nil {
			return err
		}
		if !h.isInOrder() {
			for i, ranks := range h.ranks {
				for k, r := range ranks {
					copy(dst[r*n:][:n], all[(i*most+k)*n:])
				}
			}
		}
	}
	return h.runOnHost(dst, dst, h.broadcastFromLeader)
}

// abortHost wakes the ranks of this host that wait in shared memory. h may be nil.
func (h *hosts) abortHost() {
	if h != nil && !h.isAlone() {
		h.local.abortCalls()
	}
}

// close leaves the group of this host. If the group is broken, it keeps the memory that abandoned
// calls may still use. It also does not report to the others that this rank has left, because that
// is not why their calls fail. h may be nil.
func (h *hosts) close(broken bool) error {
	if h == nil || h.isAlone() {
		return nil
	}
	if broken {
		h.local.abortCalls()
		return h.local.closeBarriers()
	}
	return h.local.Close()
}

// isRootCause reports whether an error of this host's ranks is a root cause: a death, or a rank
// that has left. Otherwise the cause may be on another host, and a notice reports it.
func isRootCause(err error) bool {
	var dead *arena.PeerError
	return errors.As(err, &dead) || errors.Is(err, ErrLeft)
}
