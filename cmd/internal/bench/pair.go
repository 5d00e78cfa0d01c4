package bench

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// An order is the next measurement of a pair of processes. A report is a process's answer.
type order struct {
	Work   string // key of works
	Rounds int
	Size   int           // bytes of the transferred data
	Pause  time.Duration // before a side is woken; 0: untilAsleep
}

type report struct {
	Nanoseconds float64
	Err         error
}

// A script is the argument of a process of a pair: its connections to the other process and to the
// measuring one.
type script struct {
	CPU     int
	Orders  *ipc.PipeEnd[report, order]
	Words   block
	Rings   [2]block // from the first process to the second, and back
	Queues  [2]*ipc.Queue[*tensor.Tensor]
	Numbers *ipc.Queue[int]
	Tools   *tools
	Group   *dist.Group
	Files   string // abstract address that serves two eventfds
}

// A pair is two processes on two processors that run the two sides of a work.
type pair struct {
	group  *shoal.Group
	orders [2]*ipc.PipeEnd[order, report]
	ctx    context.Context // done when one of them exits
	undo   []func() error
}

// ringSlots is the capacity of a pair's rings and queues.
const ringSlots = 1024

func newPair(ctx context.Context, h *environment) (_ *pair, err error) {
	p := new(pair)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	s, err := p.createShared(h)
	if err != nil {
		return nil, err
	}
	p.group = shoal.NewGroup(ctx, shoal.Options{Workers: 2})
	var cancel context.CancelCauseFunc
	p.ctx, cancel = context.WithCancelCause(ctx)
	p.addUndo(func() error { cancel(nil); return nil })
	for i := range p.orders {
		ours, theirs, err := ipc.Pipe[order, report]()
		if err != nil {
			return nil, err
		}
		defer theirs.Close()
		p.orders[i], s.Orders, s.CPU = ours, theirs, h.cpus[i]
		process := player.Go(p.group, s)
		go func() { cancel(process.Wait(context.Background())) }()
	}
	// The first answer means that both processes have received the objects in the script.
	_, err = p.runWork(ctx, order{Work: "ready"})
	return p, err
}

// createShared creates the objects that the two processes share, and returns a script that lacks
// only CPU and Orders. [pair.close] releases the objects, also if createShared fails.
func (p *pair) createShared(h *environment) (s script, err error) {
	words, err := h.domain.Alloc(wordsBytes)
	if err != nil {
		return s, err
	}
	p.addUndo(func() error { return h.domain.Release(words) })
	b, err := h.domain.Bytes(words)
	if err != nil {
		return s, err
	}
	clear(b) // the block may contain words of an earlier pair
	s.Words = block{words}
	for i := range s.Rings {
		r, senders, receivers, err := h.domain.NewRing(arena.RingOptions{Capacity: ringSlots})
		if err != nil {
			return s, err
		}
		s.Rings[i] = block{r.Handle()}
		p.addUndo(func() error {
			r.Close()
			return errors.Join(h.domain.Release(senders), h.domain.Release(receivers), h.domain.Release(r.Handle()))
		})
		if s.Queues[i], err = ipc.NewQueue[*tensor.Tensor](ringSlots); err != nil {
			return s, err
		}
		p.addUndo(s.Queues[i].Close)
	}
	if s.Numbers, err = ipc.NewQueue[int](ringSlots); err != nil {
		return s, err
	}
	p.addUndo(s.Numbers.Close)
	if s.Tools, err = p.newTools(); err != nil {
		return s, err
	}
	if s.Group, err = dist.NewGroup(2); err != nil {
		return s, err
	}
	p.addUndo(s.Group.Close)
	s.Files, err = p.serveEventfds(h)
	return s, err
}

func (p *pair) addUndo(f func() error) { p.undo = append(p.undo, f) }

var pairs atomic.Int64

// serveEventfds passes two eventfds to each process that connects to the returned address, until
// [pair.close]. They cannot be passed as arguments, because those cannot contain files.
func (p *pair) serveEventfds(h *environment) (address string, err error) {
	there, err := sys.Eventfd("there")
	if err != nil {
		return "", err
	}
	p.addUndo(there.Close)
	back, err := sys.Eventfd("back")
	if err != nil {
		return "", err
	}
	p.addUndo(back.Close)
	token := h.domain.Token()
	address = "@shoal-bench/" + hex.EncodeToString(token[:]) + "/" + strconv.FormatInt(pairs.Add(1), 10)
	l, err := sys.Listen(address)
	if err != nil {
		return "", fmt.Errorf("serve eventfds: %w", err)
	}
	p.addUndo(l.Close)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			sys.SendFiles(c, []byte("f"), there, back) // the receiver reports a failure
			c.Close()
		}
	}()
	return address, nil
}

// runWork runs both sides of a work and returns the nanoseconds per round. Only one call may run
// at a time.
func (p *pair) runWork(ctx context.Context, o order) (float64, error) {
	// The second process must get its order first, because its side waits for the leader.
	for _, side := range []int{1, 0} {
		if err := p.orders[side].Send(ctx, o); err != nil {
			return 0, p.explainError(err)
		}
	}
	var total float64
	var failed error
	for side := range p.orders {
		r, err := p.orders[side].Recv(p.ctx)
		if err != nil {
			return 0, p.explainError(err)
		}
		total += r.Nanoseconds
		failed = errors.Join(failed, r.Err)
	}
	return total / float64(max(o.Rounds, 1)), failed
}

// explainError returns the reason why a process of the pair does not answer if one has exited,
// and err otherwise.
func (p *pair) explainError(err error) error {
	if cause := context.Cause(p.ctx); cause != nil {
		return cause
	}
	return err
}

// probe returns a probe that runs o and measures the nanoseconds per round.
func (p *pair) probe(o order) *Probe {
	return &Probe{Measure: func(ctx context.Context) (float64, error) { return p.runWork(ctx, o) }}
}

// measureRate returns a probe that runs o and measures the rounds per second.
func (p *pair) measureRate(o order) *Probe {
	return &Probe{Measure: func(ctx context.Context) (float64, error) {
		ns, err := p.runWork(ctx, o)
		return 1e9 / ns, err
	}}
}

// close closes the connections, which makes the processes exit, waits for them, and releases the
// shared objects. It may be called for a pair that was set up only in part.
func (p *pair) close() (err error) {
	for _, o := range p.orders {
		if o != nil {
			err = errors.Join(err, o.Close())
		}
	}
	if p.group != nil {
		err = errors.Join(err, p.group.Wait())
	}
	for i := len(p.undo) - 1; i >= 0; i-- {
		err = errors.Join(err, p.undo[i]())
	}
	return err
}
