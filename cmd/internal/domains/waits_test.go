package domains_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/codec"
)

// lock is held by owner, and queue is empty: pids wait for them.
func lock(block string, owner int, pids ...int) observe.LockView {
	return observe.LockView{Block: block, Kind: "mutex", Owner: owner, Waiting: pids}
}

func queue(block string, senders, receivers []int, pids ...int) observe.QueueView {
	return observe.QueueView{Block: block, Capacity: 2, Senders: observe.EndView{PIDs: senders},
		Receivers: observe.EndView{PIDs: receivers, Waiting: pids}}
}

func full(block string, senders, receivers []int, pids ...int) observe.QueueView {
	return observe.QueueView{Block: block, Capacity: 2, Depth: 2, Puts: 2,
		Senders: observe.EndView{PIDs: senders, Waiting: pids}, Receivers: observe.EndView{PIDs: receivers}}
}

func barrier(parties int, members []int, pids ...int) observe.LockView {
	l := observe.LockView{Block: "b", Kind: "barrier", Limit: parties, Arrived: len(pids), Waiting: pids}
	for _, pid := range members {
		l.Shares = append(l.Shares, observe.Share{PID: pid, Count: 1})
	}
	return l
}

func TestDeadlocksAreCirclesOfThoseWhoCannotGoOn(t *testing.T) {
	pids := func(p ...int) []int { return p }
	for _, c := range []struct {
		what   string
		queues []observe.QueueView
		locks  []observe.LockView
		want   string // the processes of each circle; ? where there is doubt
	}{
		{what: "nothing"},
		{what: "a lock", locks: []observe.LockView{lock("a", 1, 2)}},
		{what: "two locks in two orders", locks: []observe.LockView{lock("a", 1, 2), lock("b", 2, 1)}, want: "[1 2]"},
		{what: "three locks, and one process behind them",
			locks: []observe.LockView{lock("a", 1, 3, 9), lock("b", 2, 1), lock("c", 3, 2)}, want: "[1 2 3]"},
		{what: "two circles",
			locks: []observe.LockView{lock("a", 1, 2), lock("b", 2, 1), lock("c", 3, 4), lock("d", 4, 3)},
			want:  "[1 2][3 4]"},
		{what: "a lock that the process itself holds", locks: []observe.LockView{lock("a", 1, 1)}},
		{what: "a dead owner",
			locks: []observe.LockView{{Block: "a", Kind: "mutex", Owner: 1, Dead: true, Waiting: pids(2)},
				lock("b", 2, 1)}},
		{what: "a lock and a queue", locks: []observe.LockView{lock("a", 1, 2)},
			queues: []observe.QueueView{queue("q", pids(2), pids(1), 1)}, want: "[1 2]"},
		{what: "another sender is free", locks: []observe.LockView{lock("a", 1, 2)},
			queues: []observe.QueueView{queue("q", pids(2, 3), pids(1), 1)}},
		{what: "the other sender waits as well", locks: []observe.LockView{lock("a", 1, 2, 3)},
			queues: []observe.QueueView{queue("q", pids(2, 3), pids(1), 1)}, want: "[1 2]"},
		{what: "a message holds the sending end", locks: []observe.LockView{lock("a", 1, 2)},
			queues: []observe.QueueView{{Block: "q", Capacity: 1, Senders: observe.EndView{PIDs: pids(2), InTransit: 1},
				Receivers: observe.EndView{Waiting: pids(1)}}}},
		{what: "an idle server",
			queues: []observe.QueueView{queue("q", pids(2), pids(1), 1), queue("r", pids(1), pids(2), 2)},
			want:   "[1 2]?"},
		{what: "two full queues",
			queues: []observe.QueueView{full("q", pids(1), pids(2), 1), full("r", pids(2), pids(1), 2)},
			want:   "[1 2]"},
		{what: "an idle consumer that has both ends", queues: []observe.QueueView{queue("q", pids(1), pids(1), 1)}},
		{what: "idle consumers that have both ends",
			queues: []observe.QueueView{queue("q", pids(1, 2, 3), pids(1, 2, 3), 1, 2, 3)}},
		{what: "consumers of two queues of which they have both ends",
			queues: []observe.QueueView{queue("q", pids(1, 2), pids(1, 2), 1), queue("r", pids(1, 2), pids(1, 2), 2)}},
		{what: "a full queue of which its producer has both ends",
			queues: []observe.QueueView{full("q", pids(1), pids(1), 1)}},
		{what: "a consumer that has both ends, and a lock of which the producer waits",
			locks:  []observe.LockView{lock("a", 1, 2)},
			queues: []observe.QueueView{queue("q", pids(1, 2), pids(1), 1)}, want: "[1 2]?"},
		{what: "behind an idle consumer that has a lock", locks: []observe.LockView{lock("a", 1, 2)},
			queues: []observe.QueueView{queue("q", pids(1), pids(1), 1)}},
		{what: "a barrier without one member", locks: []observe.LockView{barrier(2, pids(1, 2), 1)},
			queues: []observe.QueueView{queue("q", pids(1), pids(2), 2)}, want: "[1 2]"},
		{what: "a barrier with one member to spare", locks: []observe.LockView{barrier(2, pids(1, 2, 3), 1)},
			queues: []observe.QueueView{queue("q", pids(1), pids(2), 2)}},
		{what: "a barrier whose member has not come", locks: []observe.LockView{barrier(3, pids(1, 2), 1)},
			queues: []observe.QueueView{queue("q", pids(1), pids(2), 2)}},
		{what: "a broken barrier", locks: []observe.LockView{{Kind: "barrier", Broken: true, Limit: 2, Waiting: pids(1),
			Shares: []observe.Share{{PID: 1}, {PID: 2}}}},
			queues: []observe.QueueView{queue("q", pids(1), pids(2), 2)}},
		{what: "permits",
			locks: []observe.LockView{lock("a", 1, 2), {Block: "s", Kind: "semaphore", Limit: 1, Waiting: pids(1),
				Shares: []observe.Share{{PID: 2, Count: 1}}}}, want: "[1 2]"},
		{what: "a permit that is there", locks: []observe.LockView{lock("a", 1, 2), {Block: "s", Kind: "semaphore", Limit: 1,
			Permits: 1, Waiting: pids(1), Shares: []observe.Share{{PID: 2, Count: 1}}}}},
		{what: "a writer and a reader", locks: []observe.LockView{{Block: "rw", Kind: "rwmutex", Owner: 1, Drained: pids(1),
			Shares: []observe.Share{{PID: 2, Count: 1}}}, lock("a", 1, 2)}, want: "[1 2]"},
		{what: "a writer and a dead reader", locks: []observe.LockView{{Block: "rw", Kind: "rwmutex", Owner: 1, Drained: pids(1),
			Shares: []observe.Share{{PID: 2, Count: 1, Dead: true}}}, lock("a", 1, 2)}},
		{what: "an event", locks: []observe.LockView{lock("a", 1, 2),
			{Block: "e", Kind: "event", PIDs: pids(1, 2), Waiting: pids(1)}},
			want: "[1 2]?"},
		{what: "a cond",
			locks: []observe.LockView{{Block: "c", Kind: "cond", PIDs: pids(1, 2, 3), Waiting: pids(1, 2)}}},
		{what: "one that waits for two things",
			locks: []observe.LockView{lock("a", 1, 2), lock("b", 2, 1), lock("c", 9, 2)}},
	} {
		w := domains.Waits(observe.Observation{Queues: c.queues, Locks: c.locks})
		var got strings.Builder
		for _, d := range domains.Deadlocks(w, w) {
			var p []int
			for _, w := range d.Waits {
				p = append(p, w.PID)
			}
			slices.Sort(p)
			fmt.Fprint(&got, p)
			if d.Doubt != "" {
				got.WriteString("?")
			}
		}
		if got.String() != c.want {
			t.Errorf("%s: %q, want %q; waits %v", c.what, got.String(), c.want, w)
		}
	}
}

func TestDeadlocksNeedTwoLooks(t *testing.T) {
	look := func(q observe.QueueView, owner int) []domains.Wait {
		locks := []observe.LockView{lock("a", owner, 2)}
		return domains.Waits(observe.Observation{Queues: []observe.QueueView{q}, Locks: locks})
	}
	q := queue("q", []int{2}, []int{1}, 1)
	now := look(q, 1)
	if n := len(domains.Deadlocks(now, now)); n != 1 {
		t.Fatalf("%d deadlocks in two looks", n)
	}
	moved := q
	moved.Puts, moved.Gets = 1, 1
	for what, before := range map[string][]domains.Wait{
		"only one look": nil, "a message came in between": look(moved, 1), "the lock had another owner": look(q, 3),
	} {
		if d := domains.Deadlocks(before, now); len(d) != 0 {
			t.Errorf("%s: %+v", what, d)
		}
	}
}

func TestWaitsSayWhatForAndOnWhom(t *testing.T) {
	named := queue("block 3.1", []int{2}, []int{1}, 1)
	named.Names = []string{"jobs"}
	var got []string
	for _, w := range domains.Waits(observe.Observation{Queues: []observe.QueueView{named},
		Locks: []observe.LockView{lock("block 4.1", 1, 2), barrier(2, []int{3, 4}, 3)}}) {
		got = append(got, w.String())
	}
	want := []string{`1 waits for message of queue "jobs": 2`, `2 waits for the mutex block 4.1: 1`,
		"3 waits for the barrier b: 4"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJobOfAWorker(t *testing.T) {
	for _, c := range []struct {
		title, name, function string
		rank                  int // -1: unknown
	}{
		{"shoal: train 3", "train 3", "train", 3},
		{"shoal: warm", "train 3", "train", 3},
		{"shoal: warm", "a_very_long_fun", "a_very_long_fun", -1},
		{"shoal: a very long function 12", "a very long fun", "a very long function", 12},
		{"python3", "python3", "", -1},
	} {
		f, r := domains.Job(c.title, c.name)
		rank := -1
		if r != nil {
			rank = *r
		}
		if f != c.function || rank != c.rank {
			t.Errorf("%q, %q: %q %d, want %q %d", c.title, c.name, f, rank, c.function, c.rank)
		}
	}
}

func TestTheNumberOfALatest(t *testing.T) {
	body := func(v float64) []byte {
		plan, err := codec.PlanOf[float64]()
		if err != nil {
			t.Fatal(err)
		}
		var e codec.Encoder
		e.Reset(nil)
		if err := plan.Encode(&e, v); err != nil {
			t.Fatal(err)
		}
		return e.Message().Body
	}
	for _, c := range []struct {
		what, label string
		news        []byte
		want        float64
		none        bool
	}{
		{"a number", "Latest[float64]", body(0.25), 0.25, false},
		{"zero", "Latest[float64]", body(0), 0, false},
		{"no number", "Latest[float64]", body(math.NaN()), 0, true},
		{"no end", "Latest[float64]", body(math.Inf(1)), 0, true},
		{"nothing", "Latest[float64]", nil, 0, true},
		{"garbage", "Latest[float64]", []byte{0xc1, 7}, 0, true},
		{"a number that is cut", "Latest[float64]", body(0.3)[:4], 0, true},
		{"another type", "Latest[string]", body(0.25), 0, true},
	} {
		got := domains.Number(observe.QueueView{Label: c.label, News: c.news})
		if (got == nil) != c.none || got != nil && *got != c.want {
			t.Errorf("%s is %v, want %v", c.what, got, c.want)
		}
	}
}
