package domains

import (
	"fmt"
	"math"
	"strings"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/internal/arena/observe"
)

// A Loader describes a running or finished data.Loader: the recent activity of its workers and of
// the consumer of its batches.
type Loader struct {
	observe.TimelineView
	Seconds float64 `json:"seconds"` // time that the shares cover
	Waits   float64 `json:"waits"`   // share of time the consumer waited for a batch
	Loads   float64 `json:"loads"`   // share of the workers' time spent loading
	Idle    float64 `json:"idle"`    // waiting for a task
	Blocked float64 `json:"blocked"` // waiting until a result is taken
	Enough  int     `json:"enough"`  // workers needed to keep up with the consumer; 0 if unknown
	Bound   string  `json:"bound"`   // bottleneck: workers, consumer, order, or "" if idle
	Verdict string  `json:"verdict"` // the same as a sentence
}

// Thresholds for the verdict.
const (
	starving = 0.05 // minimum share of waiting for a starving consumer
	idling   = 0.3  // minimum idle share: more workers would not help
)

// newLoader computes from a timeline the shares of time that the loader's workers and consumer
// spend working and waiting, and a verdict about the bottleneck.
func newLoader(v observe.TimelineView) Loader {
	l := Loader{TimelineView: v}
	use, wait := sumSeconds(v.Consumer.Working), sumSeconds(v.Consumer.Idle)
	l.Seconds = use + wait
	var loads, idle, blocked float64
	dead := 0
	for _, t := range v.Tracks {
		loads, idle, blocked = loads+sumSeconds(t.Working), idle+sumSeconds(t.Idle), blocked+sumSeconds(t.Blocked)
		if t.State == "dead" {
			dead++
		}
	}
	l.Waits = shareOf(wait, l.Seconds)
	all := loads + idle + blocked
	l.Loads, l.Idle, l.Blocked = shareOf(loads, all), shareOf(idle, all), shareOf(blocked, all)
	if use > 0 && loads > 0 {
		l.Enough = int(math.Ceil(min(loads/use, math.MaxInt32)))
	}
	l.Bound, l.Verdict = l.findBottleneck()
	if dead > 0 {
		l.Verdict += fmt.Sprintf(" %s dead and not yet replaced.", isAre(dead, "worker"))
	}
	return l
}

func isAre(n int, word string) string {
	if n == 1 {
		return "1 " + word + " is"
	}
	return words.Count(n, word) + " are"
}

// findBottleneck returns the bottleneck, as in [Loader].Bound, and a sentence that explains it.
// The other fields of l must be set.
func (l Loader) findBottleneck() (bound, verdict string) {
	span := fmt.Sprintf("%.0f s", math.Max(1, l.Seconds))
	switch {
	case l.Consumer.State == "dead":
		return "", "The process that consumes the batches is dead."
	case l.Seconds == 0:
		return "", fmt.Sprintf("No batch has been consumed for %.0f s.", float64(l.Window)/1e6)
	case l.Workers == 0 && l.Waits > starving:
		return "workers", fmt.Sprintf("The trainer loads each batch itself, for %s of the last %s. With Workers, "+
			"loading would overlap "+
			"with training.", percentText(l.Waits), span)
	case l.Workers == 0:
		return "consumer",
			fmt.Sprintf("The trainer is the bottleneck: it loads each batch itself, which took %s of the last %s.",
				percentText(l.Waits), span)
	case l.Waits <= starving:
		return "consumer",
			fmt.Sprintf("The trainer is the bottleneck: it waited for batches %s of the last %s. %s idle %s of "+
				"the time%s.", percentText(l.Waits), span, workersWere(l.Workers), percentText(l.Idle+l.Blocked),
				l.fewerWorkers())
	case l.Idle+l.Blocked > idling:
		return "order",
			fmt.Sprintf("The trainer starves although workers are idle: it waited for batches %s of the last %s, and "+
				"%s idle %s of it. Slow batches delay later ones, or too few are prefetched: try AsReady, or a larger "+
				"Prefetch.", percentText(l.Waits), span, lowerFirst(workersWere(l.Workers)),
				percentText(l.Idle+l.Blocked))
	}
	return "workers",
		fmt.Sprintf("The trainer starves: it waited for batches %s of the last %s, and %s busy %s of it. %s",
			percentText(l.Waits), span, lowerFirst(workersWere(l.Workers)), percentText(l.Loads), l.moreWorkers())
}

func (l Loader) fewerWorkers() string {
	if l.Enough > 0 && l.Enough < l.Workers {
		return fmt.Sprintf("; %d of %d would suffice", l.Enough, l.Workers)
	}
	return ""
}

func (l Loader) moreWorkers() string {
	if l.Enough > l.Workers {
		return fmt.Sprintf("%d workers would keep up, if there are enough CPUs.", l.Enough)
	}
	return "Make samples cheaper, or add workers if there are enough CPUs."
}

func workersWere(workers int) string {
	if workers == 1 {
		return "The worker was"
	}
	return fmt.Sprintf("The %d workers were", workers)
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func percentText(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func shareOf(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}

func sumSeconds(steps []int64) (s float64) {
	for _, n := range steps {
		s += float64(n) / 1e6
	}
	return s
}
