package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
)

// A news is one event for the pages: its name, and its data as JSON without a line break.
type news struct {
	event string
	data  []byte
}

// A moment is one reading, as pages get it.
type moment struct {
	At    int64  `json:"at"`    // milliseconds of Unix time
	Every int64  `json:"every"` // milliseconds
	Error string `json:"error,omitempty"`
	domains.Census
}

// A sample is what a page draws over time. Of each domain it has the bytes in use, those that each
// process holds, and the numbers that have a name.
type sample struct {
	At      int64              `json:"at"`
	Domains map[string]holding `json:"domains"`
}

type holding struct {
	Bytes     int64              `json:"bytes"`
	Committed int64              `json:"committed"`
	Holds     map[int]int64      `json:"holds"`
	Values    map[string]float64 `json:"values,omitempty"`
}

// mostSamples bounds what is kept. Old samples are thinned out, so a page shows a whole night.
const mostSamples = 900

// A reader looks at the programs, and tells all subscribers.
type reader struct {
	look  func(context.Context, time.Duration) (domains.Census, error)
	every time.Duration

	mu          sync.Mutex
	history     []sample
	last        []byte // a moment, nil before the first one
	subscribers map[chan news]struct{}
	closed      bool
}

func newReader(look func(context.Context, time.Duration) (domains.Census, error), every time.Duration) *reader {
	return &reader{look: look, every: every, subscribers: make(map[chan news]struct{})}
}

// run looks until ctx is done. A look that fails is news as well: the next one may not.
func (r *reader) run(ctx context.Context) {
	defer r.close()
	for ctx.Err() == nil {
		c, err := r.look(ctx, r.every)
		if ctx.Err() != nil {
			return
		}
		m := moment{At: time.Now().UnixMilli(), Every: r.every.Milliseconds(), Census: c}
		if err == nil {
			err = r.publish(m)
		}
		if err != nil {
			m.Error, m.Census = err.Error(), domains.Census{Domains: []domains.Domain{}}
			r.publish(m) // a text and two numbers, which can be sent
			select {
			case <-time.After(r.every):
			case <-ctx.Done():
			}
		}
	}
}

// publish gives a moment to all subscribers. One that has not taken the last moment gets this one
// in its place, so a slow page stops nobody and is never far behind.
func (r *reader) publish(m moment) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("a reading that cannot be sent: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = data
	if m.Error == "" {
		r.history = append(thin(r.history), sampleOf(m))
	}
	for s := range r.subscribers {
		select {
		case <-s:
		default:
		}
		s <- news{"moment", data}
	}
	return nil
}

// close ends all subscriptions.
func (r *reader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for s := range r.subscribers {
		close(s)
	}
	clear(r.subscribers)
}

// subscribe returns what a page has to know first, and the channel of what comes. The channel is
// closed when the reader ends. It fails where there are as many subscribers as may be.
func (r *reader) subscribe() (first []news, next chan news, ok bool) {
	const most = 64
	r.mu.Lock()
	defer r.mu.Unlock()
	next = make(chan news, 1)
	if r.closed {
		close(next)
		return nil, next, true
	}
	if len(r.subscribers) >= most {
		return nil, nil, false
	}
	history, err := json.Marshal(r.history)
	if err != nil { // it has numbers and a text only
		return nil, nil, false
	}
	if len(r.history) > 0 {
		first = append(first, news{"history", history})
	}
	if r.last != nil {
		first = append(first, news{"moment", r.last})
	}
	r.subscribers[next] = struct{}{}
	return first, next, true
}

func (r *reader) unsubscribe(next chan news) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.subscribers, next)
}

func sampleOf(m moment) sample {
	s := sample{At: m.At, Domains: make(map[string]holding)}
	for _, d := range m.Domains {
		if d.Error != "" {
			continue
		}
		h := holding{Bytes: d.Bytes, Committed: d.Committed, Holds: make(map[int]int64)}
		for _, p := range d.Processes {
			h.Holds[p.PID] = p.Holds
		}
		for _, q := range d.Queues {
			if q.Value == nil {
				continue
			}
			for _, name := range q.Names {
				if h.Values == nil {
					h.Values = make(map[string]float64)
				}
				h.Values[name] = *q.Value
			}
		}
		s.Domains[d.Address] = h
	}
	return s
}

// thin keeps every second sample of the older two thirds, if there are as many as may be.
func thin(all []sample) []sample {
	if len(all) < mostSamples {
		return all
	}
	older := len(all) * 2 / 3
	kept := all[:0]
	for i, s := range all {
		if i >= older || i%2 == 0 {
			kept = append(kept, s)
		}
	}
	return kept
}
