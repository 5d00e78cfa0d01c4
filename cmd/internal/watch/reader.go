package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
)

// A news is an event for subscribers: a name, and JSON data that must not contain a line break.
type news struct {
	event string
	data  []byte
}

// A moment is one reading in the form sent to pages.
type moment struct {
	At    int64  `json:"at"`    // Unix time in milliseconds
	Every int64  `json:"every"` // milliseconds
	Error string `json:"error,omitempty"`
	// Host is the name of this machine. Host and Hosts are set only if hosts are joined.
	Host    string          `json:"host,omitempty"`
	Hosts   []report        `json:"hosts,omitempty"`
	Machine domains.Machine `json:"machine"`
	Domains []program       `json:"domains"`

	left int // omitted programs of a joined host
}

// A program is a program of this machine or of a joined host. For a joined host, Host is its key
// and the address is prefixed with it.
type program struct {
	Host string `json:"host,omitempty"`
	domains.Domain
}

// momentOf returns a moment of this machine.
func momentOf(c domains.Census, every time.Duration) moment {
	m := moment{At: time.Now().UnixMilli(), Every: every.Milliseconds(), Machine: c.Machine,
		Domains: make([]program, len(c.Domains))}
	for i, d := range c.Domains {
		m.Domains[i].Domain = d
	}
	return m
}

// A sample holds the values that a page plots over time. For each domain it has the bytes in use,
// the bytes held by each process and the named values.
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

// mostSamples limits the history. Older samples are thinned out, so that a page can show a whole
// night.
const mostSamples = 900

// A reader observes the programs and notifies all subscribers. run must be running in one
// goroutine; subscribe and unsubscribe may be called from any. mu protects the fields below it.
type reader struct {
	look  func(context.Context, time.Duration) (domains.Census, error)
	every time.Duration
	name  string // name of this machine
	hosts []*host

	mu          sync.Mutex
	history     []sample
	last        sides // encoded last moments; nil before the first
	subscribers map[chan news]side
	closed      bool
}

// A side is a kind of subscriber: pages, or the shoal watch of another machine, which gets only the
// programs of this machine.
type side int

const (
	pages side = iota
	others
)

// sides holds the encoded moment for each kind of subscriber.
type sides [2][]byte

func newReader(look func(context.Context, time.Duration) (domains.Census, error), every time.Duration) *reader {
	return &reader{look: look, every: every, subscribers: make(map[chan news]side)}
}

// run observes until ctx is done. A failed observation is published as an error and does not stop
// the reader.
func (r *reader) run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	defer r.close()
	for _, h := range r.hosts {
		following.Go(func() { h.run(ctx) })
	}
	for ctx.Err() == nil {
		c, err := r.observePrograms(ctx)
		if ctx.Err() != nil {
			return
		}
		m := momentOf(c, r.every)
		if err == nil {
			err = r.publish(m)
		}
		if err != nil {
			m = momentOf(domains.Census{}, r.every)
			m.Error = err.Error()
			r.publish(m) // always encodable
			select {
			case <-time.After(r.every):
			case <-ctx.Done():
			}
		}
	}
}

// observePrograms observes the programs of this machine for r.every. A program that does not
// respond delays that by seconds, so joined hosts are published in the meantime.
func (r *reader) observePrograms(ctx context.Context) (c domains.Census, err error) {
	if len(r.hosts) == 0 {
		return r.look(ctx, r.every)
	}
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		c, err = r.look(ctx, r.every)
	}()
	for patience := r.every + overdue; ; patience = r.every {
		select {
		case <-looked:
			return c, err
		case <-time.After(patience):
			r.publishHosts()
		}
	}
}

// publishHosts publishes a moment that contains only the joined hosts. The caller must not hold
// r.mu.
func (r *reader) publishHosts() {
	m := momentOf(domains.Census{}, r.every)
	m.Error = "a program on this machine does not respond yet"
	data, err := encode(r.addHosts(m))
	if err != nil {
		return // the next moment reports it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sendMoment(pages, data)
}

// overdue is the additional time that an observation may take before [reader.publishHosts] is
// called.
const overdue = time.Second

// publish sends a moment to all subscribers, and adds a sample of it to the history unless m.Error
// is set. Pages also get the joined hosts. The caller must not hold r.mu. If the moment cannot be
// encoded, publish returns an error and has no effect.
func (r *reader) publish(m moment) error {
	data, err := encode(m)
	if err != nil {
		return err
	}
	whole := data
	if len(r.hosts) > 0 {
		m = r.addHosts(m)
		if whole, err = encode(m); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.Error == "" {
		r.history = append(thinSamples(r.history), sampleOf(m))
	}
	r.sendMoment(others, data)
	r.sendMoment(pages, whole)
	return nil
}

func encode(m moment) ([]byte, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode reading: %w", err)
	}
	return data, nil
}

// sendMoment sends a moment to one kind of subscriber. The caller must hold r.mu. A pending moment
// is replaced, so a slow page neither blocks the reader nor falls behind.
func (r *reader) sendMoment(to side, data []byte) {
	r.last[to] = data
	for s, side := range r.subscribers {
		if side != to {
			continue
		}
		select {
		case <-s:
		default:
		}
		s <- news{"moment", data}
	}
}

// addHosts returns m with the states and the programs of the joined hosts.
func (r *reader) addHosts(m moment) moment {
	m.Host = r.name
	for _, h := range r.hosts {
		report, programs := h.currentState()
		m.Hosts = append(m.Hosts, report)
		m.Domains = append(m.Domains, programs...)
	}
	distinguishNames(r.name, m.Hosts)
	return m
}

// close ends all subscriptions. A later subscriber gets a closed channel.
func (r *reader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for s := range r.subscribers {
		close(s)
	}
	clear(r.subscribers)
}

// subscribe returns the initial events and a channel of further ones, which is closed when the
// reader ends. If there are too many subscribers, ok is false. Otherwise the caller must call
// unsubscribe.
func (r *reader) subscribe(of side) (first []news, next chan news, ok bool) {
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
	if err != nil { // cannot happen: only numbers and strings
		return nil, nil, false
	}
	if len(r.history) > 0 && of == pages {
		first = append(first, news{"history", history})
	}
	if r.last[of] != nil {
		first = append(first, news{"moment", r.last[of]})
	}
	r.subscribers[next] = of
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

// thinSamples drops every second sample of the older two thirds if all has mostSamples. The
// result uses the memory of all.
func thinSamples(all []sample) []sample {
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
