package dist

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/dist/internal/collective"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Far] The ranks of a group that spans machines have no memory in common. A library, called
// the engine, moves their bytes. A library call blocks until all ranks have made it, and cannot be
// canceled. Each call therefore runs on a goroutine of its own, while the caller waits for the
// result, for its context and for notices. Notices are short messages that tell other ranks that
// the sender has left or that its call has failed. If the call must be given up, its goroutine is
// abandoned: it keeps the tensors of the call until the process ends.

// A far is the state of a group over a library in one process.
type far struct {
	comm  collective.Comm
	job   *job
	hosts *hosts // equal to comm if ranks of one host share memory; may be nil
	world bool   // the group contains all ranks of the job

	noticed sync.Mutex // serializes look
	mu      sync.Mutex // protects the fields below
	calls   int64      // number of library calls, which all ranks make in the same order
	left    map[int]int64
	broken  *RankError // error of all later collective calls
	told    bool       // this rank has sent the reason to others
	rooms   []chan struct{}
	pending sync.WaitGroup // letters in flight
}

// A job is the state that all groups over the library share in one process.
type job struct {
	world  collective.World
	stuck  atomic.Bool    // a goroutine was abandoned
	abrupt atomic.Bool    // a rank leaves without finalizing the library
	over   atomic.Bool    // all ranks have left
	parts  sync.WaitGroup // subgroups that are closed but not freed yet
}

// The tags of messages sent through the library.
const (
	tagLetter = 1
	tagNotice = 2
	tagMet    = 3
)

// The kinds of notices.
const (
	noticeLeft   = 'L'
	noticeAbrupt = 'A' // left, without waiting for other ranks
	noticeBroken = 'B'
	noticeHere   = 'H' // opens a connection; otherwise ignored
)

// noticeTime is the interval at which a blocked call checks for notices.
const noticeTime = 10 * time.Millisecond

func newFar(comm collective.Comm, j *job) *far {
	f := &far{comm: comm, job: j, world: comm == collective.Comm(j.world), left: map[int]int64{}}
	for range comm.Size() {
		f.rooms = append(f.rooms, make(chan struct{}, inboxRoom))
	}
	return f
}

// newFarGroup returns the group over f's communicator. It has joined already, as the rank of the
// communicator. The caller must close it.
func newFarGroup(f *far) *Group {
	m := &member{size: f.comm.Size(), far: f}
	m.box.openRanks(m.size)
	m.seat.Store(int64(f.comm.Rank()) + 1)
	return &Group{member: m}
}

// runMove runs move, which makes library calls, on a goroutine and waits for it. move must use
// only the vectors it is given and memory of its own, because it may outlive runMove. If ctx
// ends or a notice makes the call impossible, runMove abandons move, breaks the group and
// returns a [*RankError]. An error of move also breaks the group. In a broken group runMove
// fails at once. It returns [ErrClosed] if this process has closed the group.
func (g *Group) runMove(ctx context.Context, c *call, move func(in, out *vector) error) error {
	f := g.far
	number, err := f.countCall(c)
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return g.failFar(c, err, g.Rank())
	}
	if err := g.checkNotices(c, number); err != nil { // or else an abandoned call could match this one
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
				g.awaitNotice(err)
				return g.failFar(c, err)
			}
			return nil
		case <-ctx.Done():
			select {
			case err := <-done: // completed after all
				if err == nil {
					return nil
				}
			default:
			}
			f.abandonCall(c)
			return g.failFar(c, context.Cause(ctx), g.Rank())
		case <-tick.C:
			if err := g.checkNotices(c, number); err != nil {
				select {
				case err := <-done:
					if err == nil {
						return nil
					}
				default:
				}
				f.abandonCall(c)
				return err
			}
		}
	}
}

// countCall counts a library call and returns its number, from 1. It returns a [*RankError] if
// the group is broken.
func (f *far) countCall(c *call) (number int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return 0, &RankError{Call: string(c.text), Ranks: f.broken.Ranks, Err: f.broken.Err}
	}
	f.calls++
	return f.calls, nil
}

// callCount returns the number of calls that have begun.
func (f *far) callCount() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// checkNotices handles notices and returns a [*RankError] if the call with the given number
// cannot complete, because the group is broken or a rank has left before that call. It also
// forwards the reason to the ranks of this host, because the rank that sent the notice may have
// ended before they received it.
func (g *Group) checkNotices(c *call, number int64) error {
	g.handleNotices()
	f := g.far
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		if f.hosts != nil && !f.told {
			f.told = true
			g.sendNotice(f.hosts.ranks[f.hosts.hostIndex()], noticeBroken, f.calls, f.broken.Err.Error(),
				f.broken.Ranks...)
		}
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

// failFar breaks the group because of why and returns the error of the call: a [*RankError] that
// names the ranks at fault, or [ErrClosed] if this process has closed the group. blamed are the
// ranks at fault if why does not name them.
func (g *Group) failFar(c *call, why error, blamed ...int) error {
	broken := g.breakFar(why, blamed...)
	if g.box.isClosed() {
		return ErrClosed
	}
	return &RankError{Call: string(c.text), Ranks: broken.Ranks, Err: broken.Err}
}

// awaitNotice waits up to 20 times noticeTime for the notice that explains err, an error of the
// library or of this host's shared memory. Such an error seldom names the rank at fault. It
// returns at once if err does.
func (g *Group) awaitNotice(err error) {
	if isRootCause(err) {
		return
	}
	for begin := time.Now(); time.Since(begin) < 20*noticeTime; time.Sleep(noticeTime / 20) {
		if g.checkNotices(&g.call, g.far.callCount()) != nil {
			return
		}
	}
}

// breakFar fails the current and later calls of all ranks and returns the reason. If the group
// was broken before, that is the earlier reason, not why. breakFar tells the others which ranks
// are at fault: the ranks that why names, or else blamed, which may be empty.
func (g *Group) breakFar(why error, blamed ...int) *RankError {
	f := g.far
	f.mu.Lock()
	first := f.broken == nil
	if first {
		f.told = true
		f.broken = &RankError{Err: fmt.Errorf("%w: %w", ErrBroken, why)}
		if e := (*RankError)(nil); errors.As(why, &e) { // from the ranks of this host
			f.broken.Ranks, f.broken.Err = e.Ranks, e.Err
		}
	}
	broken := f.broken
	f.mu.Unlock()
	if broken.Ranks != nil {
		blamed = broken.Ranks
	}
	if first && !errors.Is(why, ErrLeft) { // that rank sends its own notice
		g.sendNotice(g.allRanks(), noticeBroken, f.callCount(), broken.Err.Error(), blamed...)
	}
	f.hosts.abortHost()
	return broken
}

// abandoned holds the tensors of abandoned calls, because the library may still write to them.
var abandoned struct {
	sync.Mutex
	tensors []*tensor.Tensor
}

// abandonCall gives up the goroutine of a call. It keeps the memory of the call's tensors until
// the process ends, and empties the call's vectors.
func (f *far) abandonCall(c *call) {
	abandoned.Lock()
	defer abandoned.Unlock()
	for _, v := range []*vector{&c.in, &c.out} {
		for _, p := range v.parts {
			if view, err := p.of.ToDevice(p.of.Device()); err == nil { // keeps the memory alive
				abandoned.tensors = append(abandoned.tensors, view)
			}
		}
		*v = vector{}
	}
	f.job.stuck.Store(true)
	f.hosts.abortHost()
}

// sendNotice sends a notice to the given ranks, except this one. The notice contains its kind, the
// number of calls that this rank has made, the ranks at fault and the reason. sendNotice does not
// block, because notices are short.
func (g *Group) sendNotice(ranks []int, kind byte, calls int64, text string, blamed ...int) {
	f := g.far
	notice := binary.LittleEndian.AppendUint64([]byte{kind}, uint64(calls))
	notice = binary.LittleEndian.AppendUint16(notice, uint16(len(blamed)))
	for _, r := range blamed {
		notice = binary.LittleEndian.AppendUint32(notice, uint32(r))
	}
	notice = append(notice, shortenText(text, headBytes)...)
	for _, r := range ranks {
		if r == g.Rank() {
			continue
		}
		if s, err := f.comm.Send(r, tagNotice, notice); err == nil {
			f.driveSend(s, func() {})
		}
	}
}

// shortenText shortens text to at most n bytes. It removes the middle, because the error texts of
// libraries begin with the call and end with the cause.
func shortenText(text string, n int) string {
	const gap = " … "
	if len(text) <= n {
		return text
	}
	half := (n - len(gap)) / 2
	return strings.ToValidUTF8(text[:half]+gap+text[len(text)-half:], "")
}

// handleNotices handles the notices that have arrived, without blocking. It stops only after two
// probes without one: a library may check its queue before it polls the network, so only the
// second probe sees the new messages.
func (g *Group) handleNotices() {
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
		if f.comm.Receive(from, tagNotice, notice) != nil || size < noticeBytes {
			return
		}
		kind, calls, text := notice[0], int64(binary.LittleEndian.Uint64(notice[1:])), notice[noticeBytes:]
		var blamed []int
		for range binary.LittleEndian.Uint16(notice[noticeBytes-2:]) {
			if len(text) < 4 {
				return
			}
			blamed, text = append(blamed, int(binary.LittleEndian.Uint32(text))), text[4:]
		}
		g.handleNotice(from, kind, calls, string(text), blamed)
	}
}

// noticeBytes is the length of a notice without ranks at fault and without text.
const noticeBytes = 1 + 8 + 2

func (g *Group) handleNotice(from int, kind byte, calls int64, text string, blamed []int) {
	f := g.far
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind == noticeHere {
		return
	}
	if kind != noticeBroken {
		f.left[from] = calls
		f.job.abrupt.CompareAndSwap(false, kind == noticeAbrupt)
		g.box.recordGone(map[int]error{from: ErrLeft}, nil)
		return
	}
	if f.broken == nil {
		f.broken = &RankError{Ranks: blamed, Err: fmt.Errorf("%w: reported by rank %d: %s", ErrBroken, from, text)}
		if blamed == nil {
			f.broken.Err = fmt.Errorf("%w; the failed rank is unknown", f.broken.Err)
		}
	}
	g.box.recordGone(nil, ErrBroken)
}

// driveSend polls a send until it has completed or failed, and then calls sent once: before it
// returns if the send is complete already, or else on another goroutine. f.pending waits for
// that goroutine.
func (f *far) driveSend(s collective.Sending, sent func()) {
	if done, err := s.Done(); done || err != nil {
		sent()
		return
	}
	f.pending.Go(func() {
		defer sent()
		for n := (nap{}); ; n.backOff() {
			if done, err := s.Done(); done || err != nil {
				return
			}
		}
	})
}

// A nap is a polling delay with backoff. The zero nap is ready to use.
type nap struct{ times int }

func (n *nap) backOff() {
	n.times++
	time.Sleep(min(10*time.Microsecond<<min(n.times/8, 10), time.Millisecond))
}

// closeTime is the time limit of Close for letters that are not received and for ranks that do not
// close.
const closeTime = 10 * time.Second

// closeFar implements Close. It is idempotent.
func (g *Group) closeFar() error {
	if g.box.isClosed() {
		return nil
	}
	err := g.box.close()
	return errors.Join(err, g.leaveFar())
}

// leaveFar tells the other ranks that this one leaves. The communicator of a subgroup is then
// freed in the background, once the others have left. The group of all ranks waits for the
// others and for its subgroups, and finalizes the library; the error wraps errLate if the others
// do not close theirs within closeTime. If a call was abandoned or the group is broken, leaveFar
// frees nothing, because that would wait for the call.
func (g *Group) leaveFar() error {
	f := g.far
	f.mu.Lock()
	broken := f.broken != nil
	f.mu.Unlock()
	if f.job.stuck.Load() || broken {
		f.job.abrupt.Store(true)
		g.sendNotice(g.allRanks(), noticeAbrupt, f.callCount(), "")
		return f.hosts.close(true)
	}
	g.sendNotice(g.allRanks(), noticeLeft, f.callCount(), "")
	if err := f.hosts.close(false); err != nil {
		return err
	}
	if !f.world {
		f.job.parts.Go(func() {
			if g.drainMessages(time.Time{}) && !f.job.stuck.Load() {
				f.comm.Free()
			}
		})
		return nil
	}
	if !g.drainMessages(time.Now().Add(closeTime)) {
		if f.job.abrupt.Load() {
			return nil
		}
		return fmt.Errorf("close group: other ranks did not close their groups within %v: %w", closeTime, errLate)
	}
	g.pollConnections()
	f.job.over.Store(true)
	f.job.parts.Wait()
	return f.job.world.Close()
}

// connectAll makes the library connect this rank to all others. The connections complete while
// the ranks work. Otherwise the notices sent by leaveFar would be the first messages of many
// pairs, which causes the problem described at [Group.pollConnections].
func (g *Group) connectAll() { g.sendNotice(g.allRanks(), noticeHere, 0, "") }

// settleTime is how long a rank polls the library after all ranks have left. It must
// exceed the one-way latency of a message.
const settleTime = 200 * time.Millisecond

// pollConnections lets the library complete connections for other ranks.
//
// Over UCX, MPI_Finalize of MPICH before 4.2 closes its connections and then waits for the launcher
// without polling the network (https://github.com/pmodels/mpich/pull/6596). A peer with an
// incomplete connection would then wait forever. It is not sufficient that all ranks have answered:
// with one more round of notices they still hung.
func (g *Group) pollConnections() {
	for begin, n := time.Now(), (nap{}); time.Since(begin) < settleTime; n.backOff() {
		g.handleNotices()
	}
}

// drainMessages receives and discards messages to this rank until all other ranks have left, and
// then returns true. The library may otherwise reuse the communicator's context for another
// group, which would receive them. drainMessages returns false if a rank left abruptly, a call
// was abandoned, or the time limit has passed. The zero limit means none.
func (g *Group) drainMessages(limit time.Time) bool {
	f := g.far
	for n := (nap{}); ; n.backOff() {
		g.handleNotices()
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

var errLate = errors.New("closed without waiting for them")
