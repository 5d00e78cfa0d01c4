package dist

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/dist/internal/collective"
	"github.com/shoal-mp/shoal/ipc"
)

// A crossroads is where the ranks of a Comm of this process meet: a library for tests. It reduces
// float32 by sums, and counts calls.
type crossroads struct {
	mu    sync.Mutex
	turn  *sync.Cond
	turns int
	came  int
	calls int
	at    []brought
}

// brought is what a rank gives and gets.
type brought struct{ dst, src []byte }

type lane struct {
	collective.Comm // what these tests do not call
	*crossroads
	rank int
}

func newLanes(size int) (all []lane) {
	x := &crossroads{at: make([]brought, size)}
	x.turn = sync.NewCond(&x.mu)
	for r := range size {
		all = append(all, lane{crossroads: x, rank: r})
	}
	return all
}

// meet has the rank that comes last do something with what all have brought.
func (c lane) meet(dst, src []byte, do func(all []brought)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at[c.rank] = brought{dst, src}
	turn := c.turns
	if c.came++; c.came == len(c.at) {
		do(c.at)
		c.came, c.turns, c.calls = 0, c.turns+1, c.calls+1
		c.turn.Broadcast()
	}
	for c.turns == turn {
		c.turn.Wait()
	}
	return nil
}

func (c lane) Rank() int { return c.rank }
func (c lane) Size() int { return len(c.at) }

func (c lane) Broadcast(root int, b []byte) error {
	return c.meet(b, b, func(all []brought) {
		for _, to := range all {
			copy(to.dst, all[root].src)
		}
	})
}

func (c lane) AllReduce(k collective.Kind, op collective.Op, b []byte) error {
	return c.reduce(k, op, b, func(int) bool { return true })
}

func (c lane) Reduce(root int, k collective.Kind, op collective.Op, b []byte) error {
	return c.reduce(k, op, b, func(r int) bool { return r == root })
}

func (c lane) reduce(k collective.Kind, op collective.Op, b []byte, gets func(rank int) bool) error {
	if k != collective.Float32 || op != collective.Sum {
		return fmt.Errorf("reduce %v by %v: not in tests", k, op)
	}
	return c.meet(b, b, func(all []brought) {
		sum := slices.Clone(all[0].src)
		for _, from := range all[1:] {
			for at := 0; at < len(sum); at += 4 {
				put(sum[at:], get(sum[at:])+get(from.src[at:]))
			}
		}
		for r, to := range all {
			if gets(r) {
				copy(to.dst, sum)
			}
		}
	})
}

func get(b []byte) float32    { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
func put(b []byte, x float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(x)) }

func (c lane) AllGather(dst, src []byte) error {
	return c.meet(dst, src, func(all []brought) {
		for _, to := range all {
			at := 0
			for _, from := range all {
				at += copy(to.dst[at:], from.src)
			}
		}
	})
}

// byHosts returns the Comms of ranks on hosts, whose calls go by hosts from a length on, and the
// crossroads of all and of the leaders.
func byHosts(t *testing.T, ranks [][]int, least int) (all []*hosts, world, leaders *crossroads) {
	t.Helper()
	size := 0
	for _, here := range ranks {
		size += len(here)
	}
	everybody, first := newLanes(size), newLanes(len(ranks))
	all = make([]*hosts, size)
	of := make([]int, size)
	for i, here := range ranks {
		for _, r := range here {
			of[r] = i
		}
	}
	for i, here := range ranks {
		var g *Group
		if len(here) > 1 {
			var err error
			if g, err = NewGroup(len(here)); err != nil {
				t.Fatal(err)
			}
		}
		for k, r := range here {
			all[r] = &hosts{Comm: everybody[r], of: of, ranks: ranks, least: least}
			if k == 0 {
				all[r].leaders = first[i]
			}
			if g == nil {
				continue
			}
			seat := g
			if k > 0 {
				seat = another(t, g)
			}
			if err := seat.Join(k); err != nil {
				t.Fatal(err)
			}
			all[r].local = near{seat}
		}
	}
	t.Cleanup(func() {
		for _, h := range all {
			if err := h.close(false); err != nil {
				t.Error(err)
			}
		}
	})
	return all, everybody[0].crossroads, first[0].crossroads
}

// another returns a group as another process has it.
func another(t *testing.T, g *Group) *Group {
	t.Helper()
	q, err := ipc.NewQueue[*Group](1)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if err := q.Put(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	got, err := q.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

var shapesOfHosts = [][][]int{
	{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}, {{0, 1, 2}, {3}}, {{0}, {1, 2, 3}}, {{0, 3}, {1}, {2, 4}},
	{{0, 1, 2}}, {{0}, {1}},
}

// Calls by hosts have the results that the library has, with ranks wherever they are.
func TestHosts_ResultsAreThoseOfTheLibrary(t *testing.T) {
	for _, ranks := range shapesOfHosts {
		for _, n := range []int{1, 1000, 200_000} { // the last in several turns
			all, world, leaders := byHosts(t, ranks, 0)
			plain := newLanes(len(all))
			var wg sync.WaitGroup
			for r, h := range all {
				wg.Go(func() {
					if err := everyCall(h, plain[r], n); err != nil {
						t.Errorf("%v, %d numbers, rank %d: %v", ranks, n, r, err)
					}
				})
			}
			wg.Wait()
			if want := 2 + 2*len(all); world.calls != 0 || leaders.calls != want {
				t.Errorf("%v: %d calls of all ranks and %d of leaders, want %d", ranks, world.calls,
					leaders.calls, want)
			}
		}
	}
}

// everyCall compares what calls make by hosts and by a library.
func everyCall(h *hosts, plain collective.Comm, n int) error {
	mine := make([]byte, 4*n)
	for i := range n {
		put(mine[4*i:], float32(i%13+h.Rank()*7))
	}
	same := func(what string, call func(c collective.Comm, b []byte) error) error {
		got, want := slices.Clone(mine), slices.Clone(mine)
		if err := errors.Join(call(h, got), call(plain, want)); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s is not what the library makes", what)
		}
		return nil
	}
	err := same("all_reduce", func(c collective.Comm, b []byte) error {
		return c.AllReduce(collective.Float32, collective.Sum, b)
	})
	for root := range h.Size() {
		err = errors.Join(err,
			same(fmt.Sprint("reduce to ", root), func(c collective.Comm, b []byte) error {
				return c.Reduce(root, collective.Float32, collective.Sum, b)
			}),
			same(fmt.Sprint("broadcast from ", root),
				func(c collective.Comm, b []byte) error { return c.Broadcast(root, b) }))
	}
	var gathered [2][]byte
	for i, c := range []collective.Comm{h, plain} {
		gathered[i] = make([]byte, h.Size()*len(mine))
		err = errors.Join(err, c.AllGather(gathered[i], mine))
	}
	if !bytes.Equal(gathered[0], gathered[1]) {
		err = errors.Join(err, errors.New("all_gather is not what the library makes"))
	}
	return err
}

// Short calls go by the library.
func TestHosts_ShortCallsGoByTheLibrary(t *testing.T) {
	all, world, leaders := byHosts(t, [][]int{{0, 1}, {2, 3}}, 1000)
	for _, c := range []struct{ n, world, leaders int }{{0, 1, 0}, {249, 1, 0}, {250, 0, 1}} {
		before := [2]int{world.calls, leaders.calls}
		var wg sync.WaitGroup
		for _, h := range all {
			wg.Go(func() {
				if err := h.AllReduce(collective.Float32, collective.Sum, make([]byte, 4*c.n)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if world.calls-before[0] != c.world || leaders.calls-before[1] != c.leaders {
			t.Errorf("%d numbers: %d calls of all ranks, %d of leaders", c.n, world.calls-before[0],
				leaders.calls-before[1])
		}
	}
}

// A rank that leaves is named by its number among all ranks, to those that wait for it on its host.
func TestHosts_ErrorsNameTheRankOfAll(t *testing.T) {
	all, _, _ := byHosts(t, [][]int{{0}, {1, 2, 3}}, 0)
	waits := make(chan error, 1)
	go func() { waits <- all[1].AllReduce(collective.Float32, collective.Sum, make([]byte, 4)) }()
	if err := all[3].close(false); err != nil {
		t.Fatal(err)
	}
	err := <-waits
	var e *RankError
	if !errors.As(err, &e) || !errors.Is(err, ErrLeft) || !errors.Is(err, ErrBroken) ||
		!slices.Equal(e.Ranks, []int{3}) {
		t.Errorf("rank 3 has left: %v", err)
	}
}

// A broken lane is that of a rank of three whose library fails. A while later rank 1 says that rank
// 0 has died.
type brokenLane struct {
	collective.Comm
	notice []byte
	from   time.Time
}

func (c *brokenLane) Rank() int { return 2 }
func (c *brokenLane) Size() int { return 3 }

func (c *brokenLane) Probe(tag int) (from, size int, ok bool, err error) {
	return 1, len(c.notice), tag == tagNotice && c.notice != nil && time.Now().After(c.from), nil
}

func (c *brokenLane) Receive(_, _ int, b []byte) error {
	copy(b, c.notice)
	c.notice = nil
	return nil
}

func (c *brokenLane) Send(int, int, []byte) (collective.Sending, error) {
	return nil, errors.New("the library has failed")
}

// An error of the library blames nobody, so a rank hears others before it says that the group is
// broken.
func TestFar_HearsWhyTheLibraryHasFailed(t *testing.T) {
	notice := binary.LittleEndian.AppendUint64([]byte{noticeBroken}, 1)
	notice = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint16(notice, 1), 0)
	c := &brokenLane{notice: append(notice, "it has died"...), from: time.Now().Add(50 * time.Millisecond)}
	g := newFarGroup(newFar(c, new(job)))
	err := g.runMove(t.Context(), new(call), func(_, _ *vector) error {
		return errors.New("MPI_Allreduce: Other MPI error")
	})
	var e *RankError
	if !errors.As(err, &e) || !slices.Equal(e.Ranks, []int{0}) || !strings.Contains(err.Error(), "it has died") {
		t.Errorf("rank 0 has died: %v", err)
	}
}

// A rank whose library has failed and that knows no culprit is not blamed by those to which it says
// so. One that gives up by itself is.
func TestFar_BlamesNobodyForAnErrorOfTheLibrary(t *testing.T) {
	for _, c := range []struct {
		blamed []int
		says   string
	}{
		{nil, "reported by rank 1: MPI_Allreduce: Other MPI error; the failed rank is unknown"},
		{[]int{1}, "rank 1: "},
	} {
		g := newFarGroup(newFar(&brokenLane{}, new(job)))
		g.handleNotice(1, noticeBroken, 1, "MPI_Allreduce: Other MPI error", c.blamed)
		err := g.checkNotices(&call{text: []byte("all_reduce")}, 1)
		var e *RankError
		if !errors.As(err, &e) || !slices.Equal(e.Ranks, c.blamed) || !errors.Is(err, ErrBroken) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%v blames %v, want %v and %q", err, e.Ranks, c.blamed, c.says)
		}
	}
	told := &toldLane{}
	g := newFarGroup(newFar(told, new(job)))
	for _, c := range []struct {
		why    error
		blamed []int
	}{{errors.New("MPI_Allreduce: Other MPI error"), nil}, {context.Canceled, []int{2}}} {
		g.far.broken = nil
		if c.blamed == nil {
			g.failFar(new(call), c.why)
		} else {
			ended, end := context.WithCancel(t.Context())
			end()
			if err := g.runMove(ended, new(call), nil); !errors.Is(err, c.why) {
				t.Error(err)
			}
		}
		if n := int(binary.LittleEndian.Uint16(told.notice[9:])); n != len(c.blamed) {
			t.Errorf("%v: a notice that blames %d ranks, want %v", c.why, n, c.blamed)
		}
	}
}

// A toldLane keeps the last notice.
type toldLane struct {
	brokenLane
	notice []byte
}

func (c *toldLane) Send(_, tag int, b []byte) (collective.Sending, error) {
	c.notice = slices.Clone(b)
	return nil, errors.New("nobody is there")
}

// Ranks with equal cards share a host, in the order of the ranks.
func TestHosts_AreSortedByTheirCards(t *testing.T) {
	cards := make([]card, 5)
	for r, place := range []byte{7, 9, 7, 8, 9} {
		cards[r][placeAt] = place
	}
	hosts, of := sortCards(cards, placeAt, machineAt)
	if fmt.Sprint(hosts, of) != "[[0 2] [1 4] [3]] [0 1 0 2 1]" {
		t.Errorf("%v, %v", hosts, of)
	}
	if machines, _ := sortCards(cards, machineAt, cardBytes); len(machines) != 1 {
		t.Errorf("machines: %v", machines)
	}
	if a, b := newCard(), newCard(); !bytes.Equal(a[placeAt:], b[placeAt:]) || bytes.Equal(a[:placeAt], b[:placeAt]) {
		t.Error("two cards of one process are of two places, or of one job")
	}
}
