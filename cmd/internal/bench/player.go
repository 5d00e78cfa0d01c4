package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

var player = shoal.Register("bench player", executeOrders)

// A side is one process of a pair, as it sees itself. Rank 0 leads, and rank 1 follows. joinPair
// creates it, and only one goroutine uses it.
type side struct {
	ctx  context.Context
	rank int
	d    *arena.Domain

	words   []atomic.Uint64
	out, in *arena.Ring
	send    *ipc.Queue[*tensor.Tensor]
	recv    *ipc.Queue[*tensor.Tensor]
	numbers *ipc.Queue[int] // from rank 0 to rank 1
	tools   *tools
	group   *dist.Group
	vector  *tensor.Tensor // operand of collectives
	bellOut *os.File       // eventfds
	bellIn  *os.File

	others  crowd     // other open queues of the process
	scratch [2][]byte // private memory, see privateMemory
}

// executeOrders is the function of the two processes of a pair. It executes orders until the
// measuring process closes the pipe.
func executeOrders(ctx context.Context, rank int, s script) error {
	defer s.Orders.Close()
	defer s.Group.Close()
	if err := sys.SetAffinity(s.CPU); err != nil {
		return err
	}
	me, err := joinPair(ctx, rank, s)
	if err != nil {
		return err
	}
	for {
		o, err := s.Orders.Recv(ctx)
		if errors.Is(err, ipc.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		d, err := me.runOrder(o)
		if err := s.Orders.Send(ctx, report{float64(d), err}); err != nil {
			return err
		}
	}
}

func joinPair(ctx context.Context, rank int, s script) (*side, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	words, err := d.Bytes(s.Words.Handle)
	if err != nil {
		return nil, err
	}
	me := &side{
		ctx: ctx, rank: rank, d: d, words: sys.Words(words),
		send: s.Queues[rank], recv: s.Queues[1-rank], numbers: s.Numbers, tools: s.Tools, group: s.Group,
	}
	if err := s.Group.Join(rank); err != nil {
		return nil, err
	}
	if me.out, err = d.OpenRing(s.Rings[rank].Handle); err != nil {
		return nil, err
	}
	if me.in, err = d.OpenRing(s.Rings[1-rank].Handle); err != nil {
		return nil, err
	}
	return me, me.dialEventfds(ctx, s.Files)
}

func (s *side) runOrder(o order) (time.Duration, error) {
	w, ok := works[o.Work]
	if !ok {
		return 0, fmt.Errorf("unknown work %q", o.Work)
	}
	if s.rank == 1 {
		w.lead = w.follow
	}
	if w.lead == nil {
		return 0, nil
	}
	d, err := w.lead(s, o)
	if err != nil {
		err = fmt.Errorf("side %d of %s: %w", s.rank, o.Work, err)
	}
	return d, err
}

func (s *side) dialEventfds(ctx context.Context, address string) error {
	c, err := sys.Dial(ctx, address)
	if err != nil {
		return fmt.Errorf("fetch eventfds: %w", err)
	}
	defer c.Close()
	var b [1]byte
	_, files, err := sys.RecvFiles(c, b[:], 2)
	if err != nil {
		return fmt.Errorf("fetch eventfds: %w", err)
	}
	if len(files) != 2 {
		return fmt.Errorf("fetch eventfds: got %d, want 2", len(files))
	}
	s.bellOut, s.bellIn = files[s.rank], files[1-s.rank]
	return nil
}

// Offsets of words in the block that a pair shares. Each word has its own pair of cache lines.
const (
	wordsApart = 16 // in words; 128 bytes, because processors prefetch lines in pairs
	meetings   = 0  // number of meetings of each side
	signals    = 2 * wordsApart
	tickets    = 4 * wordsApart // of the bare ring
	bareSlots  = 6 * wordsApart
	wordsBytes = 8 * (bareSlots + bareRing)
)

// ownWord returns this side's word at base, and peerWord the other side's. base is one of the
// offsets above.
func (s *side) ownWord(base int) *atomic.Uint64  { return &s.words[base+s.rank*wordsApart] }
func (s *side) peerWord(base int) *atomic.Uint64 { return &s.words[base+(1-s.rank)*wordsApart] }

// syncSides waits until the other side has called it as often, so that both start at the same
// time. It spins.
func (s *side) syncSides() error {
	n := s.ownWord(meetings).Add(1)
	for i := 0; s.peerWord(meetings).Load() < n; i++ {
		if err := s.yieldSpin(i); err != nil {
			return err
		}
	}
	return nil
}

// yieldSpin must be called in each iteration of a spin loop, with the number i of the iteration.
// Each 4096th time it yields the processor and returns the cause of the context if that is done.
func (s *side) yieldSpin(i int) error {
	if i&0xfff != 0xfff {
		return nil
	}
	runtime.Gosched()
	return context.Cause(s.ctx)
}

// privateMemory returns size bytes of private memory of this process. i is 0 or 1: calls with
// the same i share their memory. All of its pages have been written.
func (s *side) privateMemory(i, size int) []byte {
	if len(s.scratch[i]) < size {
		s.scratch[i] = make([]byte, size)
		for j := range s.scratch[i] {
			s.scratch[i][j] = byte(j)
		}
	}
	return s.scratch[i][:size]
}

// timeRounds calls round n times and returns their total duration, or 0 and the first error.
func timeRounds(n int, round func() error) (time.Duration, error) {
	begin := time.Now()
	for range n {
		if err := round(); err != nil {
			return 0, err
		}
	}
	return time.Since(begin), nil
}

// repeatRounds calls round n times, up to the first error. The duration that it returns is
// always 0, because the other side measures the rounds.
func repeatRounds(n int, round func() error) (time.Duration, error) {
	_, err := timeRounds(n, round)
	return 0, err
}
