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
	hosts *hosts // comm, if ranks of a host share memory
	world bool   // of all ranks of the job

	noticed sync.Mutex // one goroutine at a time takes notices
	mu      sync.Mutex // for what follows
	calls   int64      // of the library, which all ranks make in the same order
	left    map[int]int64
	broken  *RankError // why no call of all ranks can be made any more
	told    bool       // this rank has told others why
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
	tagMet    = 3
)

// The kinds of notices.
const (
	noticeLeft   = 'L'
	noticeAbrupt = 'A' // the same, and the rank does not wait for the others
	noticeBroken = 'B'
	noticeHere   = 'H' // nothing but that the rank is there
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
		return g.failFar(c, err, g.Rank())
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
				g.listen(err)
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
			return g.failFar(c, context.Cause(ctx), g.Rank())
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

// missed takes notices, and returns an error if the call cannot end any more. The rank tells those
// of its host, which it wakes, what it was told: the messenger may have ended before they hear of
// it.
func (g *Group) missed(c *call, number int64) error {
	g.look()
	f := g.far
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		if f.hosts != nil && !f.told {
			f.told = true
			g.tell(f.hosts.ranks[f.hosts.host()], noticeBroken, f.calls, f.broken.Err.Error(), f.broken.Ranks...)
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

// failFar breaks the group and returns the error of the call.
func (g *Group) failFar(c *call, why error, blamed ...int) error {
	broken := g.breakFar(why, blamed...)
	if g.box.isClosed() {
		return ErrClosed
	}
	return &RankError{Call: string(c.text), Ranks: broken.Ranks, Err: broken.Err}
}

// listen waits for the notice of a rank that knows why ranks of this host were woken, or why the
// library has failed: it seldom says which rank has ended.
func (g *Group) listen(err error) {
	if known(err) {
		return
	}
	for begin := time.Now(); time.Since(begin) < 20*noticeTime; time.Sleep(noticeTime / 20) {
		if g.missed(&g.call, g.far.made()) != nil {
			return
		}
	}
}

// breakFar ends the calls of all ranks, and returns why. It tells the others which ranks are to
// blame: those that why names, or else the blamed, who may be none.
func (g *Group) breakFar(why error, blamed ...int) *RankError {
	f := g.far
	f.mu.Lock()
	first := f.broken == nil
	if first {
		f.told = true
		f.broken = &RankError{Err: fmt.Errorf("%w: %w", ErrBroken, why)}
		if e := (*RankError)(nil); errors.As(why, &e) { // of the ranks of this host
			f.broken.Ranks, f.broken.Err = e.Ranks, e.Err
		}
	}
	broken := f.broken
	f.mu.Unlock()
	if broken.Ranks != nil {
		blamed = broken.Ranks
	}
	if first && !errors.Is(why, ErrLeft) { // which that rank tells itself
		g.tell(g.all(), noticeBroken, f.made(), broken.Err.Error(), blamed...)
	}
	f.hosts.abort()
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
	f.hosts.abort()
}

// tell sends a notice to some ranks, but not to this one: of what kind, how many calls this rank
// has made, why, and the ranks that are to blame. It does not wait: notices are short.
func (g *Group) tell(ranks []int, kind byte, calls int64, text string, blamed ...int) {
	f := g.far
	notice := binary.LittleEndian.AppendUint64([]byte{kind}, uint64(calls))
	notice = binary.LittleEndian.AppendUint16(notice, uint16(len(blamed)))
	for _, r := range blamed {
		notice = binary.LittleEndian.AppendUint32(notice, uint32(r))
	}
	notice = append(notice, clip(text, headBytes)...)
	for _, r := range ranks {
		if r == g.Rank() {
			continue
		}
		if s, err := f.comm.Send(r, tagNotice, notice); err == nil {
			f.follow(s, func() {})
		}
	}
}

// clip shortens a text to n bytes. What a library says of its error begins with the call and ends
// with the cause, so the middle goes.
func clip(text string, n int) string {
	const gap = " … "
	if len(text) <= n {
		return text
	}
	half := (n - len(gap)) / 2
	return strings.ToValidUTF8(text[:half]+gap+text[len(text)-half:], "")
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
		g.heed(from, kind, calls, string(text), blamed)
	}
}

// noticeBytes is how long a notice is that blames nobody and says nothing.
const noticeBytes = 1 + 8 + 2

func (g *Group) heed(from int, kind byte, calls int64, text string, blamed []int) {
	f := g.far
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind == noticeHere {
		return
	}
	if kind != noticeBroken {
		f.left[from] = calls
		f.job.abrupt.CompareAndSwap(false, kind == noticeAbrupt)
		g.box.note(map[int]error{from: ErrLeft}, nil)
		return
	}
	if f.broken == nil {
		f.broken = &RankError{Ranks: blamed, Err: fmt.Errorf("%w: rank %d says: %s", ErrBroken, from, text)}
		if blamed == nil {
			f.broken.Err = fmt.Errorf("%w; it is unknown which rank has failed", f.broken.Err)
		}
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
		g.tell(g.all(), noticeAbrupt, f.made(), "")
		return f.hosts.close(true)
	}
	g.tell(g.all(), noticeLeft, f.made(), "")
	if err := f.hosts.close(false); err != nil {
		return err
	}
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
	g.settle()
	f.job.over.Store(true)
	f.job.parts.Wait()
	return f.job.world.Close()
}

// greet has the library connect this rank with all others, which completes while ranks work. The
// notices by which ranks leave would be the first messages of many pairs otherwise, and see settle.
func (g *Group) greet() { g.tell(g.all(), noticeHere, 0, "") }

// settleTime is how long a rank goes on with the library when all have left. What it waits for are
// messages of one way through a network.
const settleTime = 200 * time.Millisecond

// settle lets the library complete what it does for other ranks.
//
// Over UCX, MPI_Finalize of MPICH before 4.2 closes its connections and then waits for the
// launcher, without a look at the network (https://github.com/pmodels/mpich/pull/6596). A rank with
// a connection that is not complete would wait for ever for one that is there already. That all
// ranks have answered is not enough: with one more round of notices they still hung.
func (g *Group) settle() {
	for begin, n := time.Now(), (nap{}); time.Since(begin) < settleTime; n.wait() {
		g.look()
	}
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
