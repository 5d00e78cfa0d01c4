package dist

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/collective"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Far] The ranks of a group that reaches other machines have no memory in common. An engine
// that is a library moves their bytes. Nothing ends a call of the library whose ranks do not all
// come. So each call is made on a goroutine of its own, beside which the caller waits for its
// context, and for notices: short messages by which a rank says that it has left, or that a call of
// its has failed. A goroutine that is left alone keeps the tensors of its call until the process
// ends.

// A far is what a process has of a group that reaches other machines.
type far struct {
	comm  collective.Comm
	job   *job
	world bool // of all ranks of the job

	noticed sync.Mutex // one goroutine at a time takes notices
	mu      sync.Mutex // for what follows
	calls   int64      // of the library, which all ranks make in the same order
	left    map[int]int64
	broken  *RankError // why no call of all ranks can be made any more
	rooms   []chan struct{}
	pending sync.WaitGroup // letters that are under way
}

// A job is what the groups of a process have in common that reach other machines by one library.
type job struct {
	world  collective.World
	stuck  atomic.Bool    // a goroutine was left alone
	abrupt atomic.Bool    // a rank leaves the library as it is
	over   atomic.Bool    // all ranks have left
	parts  sync.WaitGroup // groups of some ranks that are closed and not given back
}

// The tags of messages of the library.
const (
	tagLetter = 1
	tagNotice = 2
)

// The kinds of notices.
const (
	noticeLeft   = 'L'
	noticeAbrupt = 'A' // the same, and the rank does not wait for the others
	noticeBroken = 'B'
)

// noticeTime is how often a call that waits looks for notices.
const noticeTime = 10 * time.Millisecond

func newFar(comm collective.Comm, j *job) *far {
	f := &far{comm: comm, job: j, world: comm == collective.Comm(j.world), left: map[int]int64{}}
	for range comm.Size() {
		f.rooms = append(f.rooms, make(chan struct{}, inboxRoom))
	}
	return f
}

// newFarGroup returns a group that is joined.
func newFarGroup(f *far) *Group {
	m := &member{size: f.comm.Size(), far: f}
	m.box.open(m.size)
	m.seat.Store(int64(f.comm.Rank()) + 1)
	return &Group{member: m}
}

// do makes calls of the library, which move does, and waits for them. What move uses besides the
// vectors of c is its own.
func (g *Group) do(ctx context.Context, c *call, move func(in, out *vector) error) error {
	f := g.far
	number, err := f.begin(c)
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return g.failFar(c, err)
	}
	if err := g.missed(c, number); err != nil { // else a call that was left alone would answer this one
		return err
	}
	in, out := c.in, c.out
	done := make(chan error, 1)
	go func() { done <- move(&in, &out) }()
	tick := time.NewTicker(noticeTime)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				return g.failFar(c, err)
			}
			return nil
		case <-ctx.Done():
			select {
			case err := <-done: // it has come, though late
				if err == nil {
					return nil
				}
			default:
			}
			f.abandon(c)
			return g.failFar(c, context.Cause(ctx))
		case <-tick.C:
			if err := g.missed(c, number); err != nil {
				select {
				case err := <-done:
					if err == nil {
						return nil
					}
				default:
				}
				f.abandon(c)
				return err
			}
		}
	}
}

// begin counts a call.
func (f *far) begin(c *call) (number int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return 0, &RankError{Call: string(c.text), Ranks: f.broken.Ranks, Err: f.broken.Err}
	}
	f.calls++
	return f.calls, nil
}

// made returns how many calls have begun.
func (f *far) made() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// missed takes notices, and returns an error if the call cannot end any more.
func (g *Group) missed(c *call, number int64) error {
	g.look()
	f := g.far
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return &RankError{Call: string(c.text), Ranks: f.broken.Ranks, Err: f.broken.Err}
	}
	e := &RankError{Call: string(c.text), Err: fmt.Errorf("%w: %w", ErrLeft, ErrBroken)}
	for r, made := range f.left {
		if made < number {
			e.Ranks = append(e.Ranks, r)
		}
	}
	if e.Ranks == nil {
		return nil
	}
	slices.Sort(e.Ranks)
	f.broken = e
	return e
}

// failFar breaks the group and returns the error of the call.
func (g *Group) failFar(c *call, why error) error {
	broken := g.breakFar(why)
	if g.box.isClosed() {
		return ErrClosed
	}
	return &RankError{Call: string(c.text), Ranks: broken.Ranks, Err: broken.Err}
}

// breakFar ends the calls of all ranks, and returns why.
func (g *Group) breakFar(why error) *RankError {
	f := g.far
	f.mu.Lock()
	first := f.broken == nil
	if first {
		f.broken = &RankError{Err: fmt.Errorf("%w: %w", ErrBroken, why)}
	}
	broken := f.broken
	f.mu.Unlock()
	if first {
		g.tell(noticeBroken, why.Error())
	}
	return broken
}

// abandoned are tensors of calls that have not ended, which the library may still write to.
var abandoned struct {
	sync.Mutex
	tensors []*tensor.Tensor
}

// abandon leaves the goroutine of a call alone.
func (f *far) abandon(c *call) {
	abandoned.Lock()
	defer abandoned.Unlock()
	for _, v := range []*vector{&c.in, &c.out} {
		for _, p := range v.parts {
			if view, err := p.of.ToDevice(p.of.Device()); err == nil { // a view, which holds the memory
				abandoned.tensors = append(abandoned.tensors, view)
			}
		}
		*v = vector{}
	}
	f.job.stuck.Store(true)
}

// tell sends a notice to all other ranks. It does not wait: notices are short.
func (g *Group) tell(kind byte, text string) {
	f := g.far
	f.mu.Lock()
	notice := binary.LittleEndian.AppendUint64([]byte{kind}, uint64(f.calls))
	f.mu.Unlock()
	notice = append(notice, text[:min(len(text), headBytes)]...)
	for r := range g.size {
		if r == g.Rank() {
			continue
		}
		if s, err := f.comm.Send(r, tagNotice, notice); err == nil {
			f.follow(s, func() {})
		}
	}
}

// look takes the notices that have come. A library may look at what it has taken from the network
// first, and take more afterwards: so the second look finds what the first one has let in.
func (g *Group) look() {
	f := g.far
	f.noticed.Lock()
	defer f.noticed.Unlock()
	for misses := 0; misses < 2; {
		from, size, ok, err := f.comm.Probe(tagNotice)
		if err != nil {
			return
		}
		if !ok {
			misses++
			continue
		}
		notice := make([]byte, size)
		if f.comm.Receive(from, tagNotice, notice) != nil || size < 9 {
			return
		}
		g.heed(from, notice[0], int64(binary.LittleEndian.Uint64(notice[1:])), string(notice[9:]))
	}
}

func (g *Group) heed(from int, kind byte, calls int64, text string) {
	f := g.far
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind != noticeBroken {
		f.left[from] = calls
		f.job.abrupt.CompareAndSwap(false, kind == noticeAbrupt)
		g.box.note(map[int]error{from: ErrLeft}, nil)
		return
	}
	if f.broken == nil {
		f.broken = &RankError{Ranks: []int{from}, Err: fmt.Errorf("%w: it says: %s", ErrBroken, text)}
	}
	g.box.note(nil, ErrBroken)
}

// follow moves a message on until it can be forgotten.
func (f *far) follow(s collective.Sending, sent func()) {
	if done, err := s.Done(); done || err != nil {
		sent()
		return
	}
	f.pending.Go(func() {
		defer sent()
		for n := (nap{}); ; n.wait() {
			if done, err := s.Done(); done || err != nil {
				return
			}
		}
	})
}

// A nap is a wait that grows longer.
type nap struct{ times int }

func (n *nap) wait() {
	n.times++
	time.Sleep(min(10*time.Microsecond<<min(n.times/8, 10), time.Millisecond))
}

// closeTime bounds how long Close waits for letters that nobody receives, and for ranks that do not
// close.
const closeTime = 10 * time.Second

// closeFar closes the group.
func (g *Group) closeFar() error {
	if g.box.isClosed() {
		return nil
	}
	err := g.box.close()
	return errors.Join(err, g.leaveFar())
}

// leaveFar says that this rank has left, and gives the group back to the library. If a call has not
// ended, the library is left as it is: it would wait for the call.
func (g *Group) leaveFar() error {
	f := g.far
	f.mu.Lock()
	broken := f.broken != nil
	f.mu.Unlock()
	if f.job.stuck.Load() || broken {
		f.job.abrupt.Store(true)
		g.tell(noticeAbrupt, "")
		return nil
	}
	g.tell(noticeLeft, "")
	if !f.world {
		f.job.parts.Go(func() {
			if g.drain(time.Time{}) && !f.job.stuck.Load() {
				f.comm.Free()
			}
		})
		return nil
	}
	if !g.drain(time.Now().Add(closeTime)) {
		if f.job.abrupt.Load() {
			return nil
		}
		return fmt.Errorf("close group: other ranks have not closed theirs within %v: %w", closeTime, errLate)
	}
	f.job.over.Store(true)
	f.job.parts.Wait()
	return f.job.world.Close()
}

// drain takes what is under way to this rank until all others have left, since the library may give
// the place of a message that nobody has taken to another group. It reports whether they have.
func (g *Group) drain(limit time.Time) bool {
	f := g.far
	for n := (nap{}); ; n.wait() {
		g.look()
		for {
			l, err := (farMailbox{g}).TryGet()
			if err != nil {
				break
			}
			l.close()
		}
		f.mu.Lock()
		all := len(f.left) == g.size-1
		f.mu.Unlock()
		switch {
		case f.job.abrupt.Load() || f.job.stuck.Load():
			return false
		case all || f.job.over.Load():
			f.pending.Wait()
			return true
		case !limit.IsZero() && time.Now().After(limit):
			return false
		}
	}
}

var errLate = errors.New("left without them")
