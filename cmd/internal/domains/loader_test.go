package domains_test

import (
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/internal/arena/observe"
)

// track has these seconds, in a state.
func track(state string, working, idle, blocked float64) observe.TrackView {
	us := func(s float64) []int64 { return []int64{int64(s * 5e5), int64(s * 5e5)} }
	return observe.TrackView{PID: 7, State: state, Working: us(working), Idle: us(idle), Blocked: us(blocked)}
}

func TestALoaderIsJudged(t *testing.T) {
	busy, idle := track("working", 9.8, 0.2, 0), track("idle", 1, 9, 0)
	for _, c := range []struct {
		what     string
		workers  int
		consumer observe.TrackView
		tracks   []observe.TrackView
		bound    string
		words    []string
		enough   int
	}{
		{"workers are slow", 2, track("idle", 4, 6, 0), []observe.TrackView{busy, busy}, "workers",
			[]string{"The trainer starves", "60 % of the last 10 s", "the 2 workers were busy 98 %",
				"5 workers would keep up"}, 5},
		{"the trainer is slow", 4, track("working", 9.9, 0.1, 0), []observe.TrackView{idle, idle, idle, idle},
			"consumer",
			[]string{"The trainer is the bottleneck", "1 % of the last 10 s", "idle 90 %", "1 of 4 would suffice"}, 1},
		{"both wait", 2, track("idle", 4, 6, 0), []observe.TrackView{busy, idle}, "order",
			[]string{"starves although workers are idle", "AsReady", "Prefetch"}, 3},
		{"no room", 1, track("working", 10, 0, 0), []observe.TrackView{track("blocked", 2, 0, 8)}, "consumer",
			[]string{"The worker was idle 80 %"}, 1},
		{"nobody but the trainer", 0, track("idle", 5, 5, 0), []observe.TrackView{busy}, "workers",
			[]string{"loads each batch itself, for 50 %"}, 2},
		{"that is quick", 0, track("working", 9.8, 0.2, 0), []observe.TrackView{track("idle", 0.2, 9.8, 0)}, "consumer",
			[]string{"is the bottleneck", "2 %"}, 1},
		{"nothing", 2, observe.TrackView{}, nil, "", []string{"No batch has been consumed for 10 s."}, 0},
		{"a trainer that was killed", 2, track("dead", 5, 5, 0), nil, "", []string{"is dead"}, 0},
		{"a worker that was killed", 2, track("idle", 4, 6, 0),
			[]observe.TrackView{busy, track("dead", 9.8, 0.2, 0)}, "workers",
			[]string{"1 worker is dead and not yet replaced."}, 5},
	} {
		l := domains.Judge(observe.TimelineView{Workers: c.workers, Window: 10e6, Consumer: c.consumer,
			Tracks: c.tracks})
		if l.Bound != c.bound || l.Enough != c.enough {
			t.Errorf("%s: bound by %q, %d would do; want %q, %d", c.what, l.Bound, l.Enough, c.bound, c.enough)
		}
		for _, w := range c.words {
			if !strings.Contains(l.Verdict, w) {
				t.Errorf("%s: %q has no %q", c.what, l.Verdict, w)
			}
		}
	}
}
