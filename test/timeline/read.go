package timeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// A Log holds the contents of a trace file.
type Log struct {
	Processes map[int]string // names by process ID
	Tracks    []*Track       // by process ID and track ID
	Lost      int            // spans that were dropped
}

// A Track holds the spans of one goroutine in the order of their start times.
type Track struct {
	PID, ID int
	Name    string
	Spans   []Span
}

// A Span is a named interval.
type Span struct {
	Name       string
	Begin, End time.Duration // since the creation of the trace
	Depth      int           // number of enclosing spans
}

// Read reads a trace file. It returns an error unless the file is a single array of events, each
// track has a name, and the spans of each track nest.
func Read(path string) (*Log, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var events []struct {
		Name, Ph string
		Ts, Dur  float64
		Pid, Tid int
		Args     struct {
			Name  string
			Spans int
		}
	}
	if err := json.Unmarshal(b, &events); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	l := &Log{Processes: make(map[int]string)}
	tracks := make(map[[2]int]*Track)
	track := func(pid, id int) *Track {
		key := [2]int{pid, id}
		if tracks[key] == nil {
			tracks[key] = &Track{PID: pid, ID: id}
			l.Tracks = append(l.Tracks, tracks[key])
		}
		return tracks[key]
	}
	micro := func(us float64) time.Duration { return time.Duration(us*1000 + 0.5) }
	for _, e := range events {
		switch {
		case e.Ph == "M" && e.Name == "process_name":
			l.Processes[e.Pid] = e.Args.Name
		case e.Ph == "M" && e.Name == "thread_name":
			track(e.Pid, e.Tid).Name = e.Args.Name
		case e.Ph == "X":
			t := track(e.Pid, e.Tid)
			t.Spans = append(t.Spans, Span{Name: e.Name, Begin: micro(e.Ts), End: micro(e.Ts) + micro(e.Dur)})
		case e.Ph == "I":
			l.Lost += e.Args.Spans
		default:
			return nil, fmt.Errorf("read %s: an event %q of phase %q", path, e.Name, e.Ph)
		}
	}
	slices.SortFunc(l.Tracks, func(a, b *Track) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.ID, b.ID))
	})
	for _, t := range l.Tracks {
		if t.Name == "" {
			return nil, fmt.Errorf("read %s: track %d of process %d has no name", path, t.ID, t.PID)
		}
		if err := t.nest(); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return l, nil
}

// nest sorts the spans and sets their depths. It returns an error if they do not nest, or if one
// ends before it begins.
func (t *Track) nest() error {
	slices.SortStableFunc(t.Spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(b.End, a.End))
	})
	var open []Span
	for i := range t.Spans {
		s := &t.Spans[i]
		for len(open) > 0 && open[len(open)-1].End <= s.Begin {
			open = open[:len(open)-1]
		}
		if s.End < s.Begin {
			return fmt.Errorf("track %q of process %d: %q ends before it begins", t.Name, t.PID, s.Name)
		}
		if n := len(open); n > 0 && open[n-1].End < s.End {
			return fmt.Errorf("track %q of process %d: %q at %v lies partly in %q", t.Name, t.PID, s.Name, s.Begin,
				open[n-1].Name)
		}
		s.Depth = len(open)
		open = append(open, *s)
	}
	return nil
}

// Sum returns the total duration and the number of the spans with a name.
func (t *Track) Sum(name string) (sum time.Duration, n int) {
	for _, s := range t.Spans {
		if s.Name == name {
			sum += s.End - s.Begin
			n++
		}
	}
	return sum, n
}

// Covered returns the time from the start of the first span to the end of the last one, and the
// part of it that spans cover. Both are 0 without spans.
func (t *Track) Covered() (life, covered time.Duration) {
	if len(t.Spans) == 0 {
		return 0, 0
	}
	end := t.Spans[0].End
	for _, s := range t.Spans {
		end = max(end, s.End)
		if s.Depth == 0 {
			covered += s.End - s.Begin
		}
	}
	return end - t.Spans[0].Begin, covered
}
