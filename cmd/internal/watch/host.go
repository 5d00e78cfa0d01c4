package watch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/internal/words"
)

// own is the path of the event stream for other instances of shoal watch. It contains only the
// programs of this machine, so that instances that join each other do not form a loop.
const own = "own"

// A hello is the first event of an event stream.
type hello struct {
	Name  string `json:"name"`  // machine name
	Place string `json:"place"` // equal for instances that see the same programs
	Every int64  `json:"every"` // milliseconds
}

// A report is the state of a joined host, as sent to pages.
type report struct {
	Key     string          `json:"key"`
	Name    string          `json:"name"`
	State   string          `json:"state"`
	Since   int64           `json:"since"` // last reading or first attempt, Unix time in ms
	Error   string          `json:"error,omitempty"`
	Machine domains.Machine `json:"machine"`
}

// States of a host.
const (
	connecting = "connecting" // no response yet
	live       = "live"
	failed     = "failed" // could not be joined so far
	silent     = "silent" // was live before
)

// A host is a joined host. Its run method must be running: it reads the host's event stream and
// reconnects after failures. mu protects the fields below it.
type host struct {
	join  Join
	place string // of this server

	mu      sync.Mutex
	hello   hello
	state   string
	since   time.Time
	problem error
	raw     []byte // the latest event, decoded when it is needed
	came    time.Time
	last    moment
}

func newHost(j Join, place string) *host {
	return &host{join: j, place: place, state: connecting, since: time.Now()}
}

// run follows the host until ctx is done and reconnects with exponential backoff.
func (h *host) run(ctx context.Context) {
	for tries := 0; ctx.Err() == nil; tries++ {
		began := time.Now()
		err := h.followStream(ctx)
		if time.Since(began) > patience {
			tries = 0
		}
		h.recordFailure(err)
		select {
		case <-time.After(backoff(tries)):
		case <-ctx.Done():
		}
	}
}

func (h *host) recordFailure(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.markLost(err)
	h.raw = nil
}

// markLost records why there are no readings. The caller must hold h.mu.
func (h *host) markLost(err error) {
	h.problem, h.state = err, failed
	if h.last.At != 0 {
		h.state = silent
	}
}

// followStream reads the host's event stream until it ends, ctx is done or the host is silent
// for too long. It always returns an error, which is the reason for the end.
func (h *host) followStream(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(2*patience, func() { cancel(errors.New("no data received")) })
	defer silence.Stop()
	answer, err := h.join.open(ctx)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, mostBytes)
	event, patient := "", 2*patience
	for lines.Scan() {
		name, data, _ := bytes.Cut(lines.Bytes(), []byte(": "))
		switch string(name) {
		case "event":
			event = string(data)
		case "data":
			more, err := h.recordEvent(event, data)
			if err != nil {
				return err
			}
			patient = cmp.Or(more, patient)
			silence.Reset(patient)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return errTooMuch
	}
	return cmp.Or(context.Cause(ctx), lines.Err(), errors.New("connection closed"))
}

// recordEvent records an event. Moments are decoded only when pages are updated, so a host that
// sends many of them costs no more. For a hello it returns the permitted duration of silence,
// and 0 for other events. It returns an error if the event violates the protocol or is the last
// one.
func (h *host) recordEvent(event string, data []byte) (patient time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch event {
	case "hello":
		var said hello
		if err := json.Unmarshal(data, &said); err != nil || said.Place == "" {
			return 0, errors.New("not a shoal watch: no hello event received")
		}
		if said.Place == h.place {
			return 0, errors.New("it observes this machine, whose programs are already shown")
		}
		said.Name, said.Every = words.Clean(truncateText(said.Name, 64)), min(max(said.Every, 50), 3600_000)
		h.hello = said
		return 2*patience + 3*time.Duration(said.Every)*time.Millisecond, nil
	case "moment":
		if h.hello.Place == "" {
			return 0, errors.New("not a shoal watch: no hello event received")
		}
		h.raw, h.came = append(h.raw[:0], data...), time.Now()
	case "end":
		return 0, errors.New("shoal watch on this host has ended")
	}
	return 0, nil
}

// currentState returns the state of the host, and the programs of its last reading if it is
// recent enough; otherwise they are nil.
func (h *host) currentState() (report, []program) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.raw != nil {
		m, err := decode(h.raw)
		if err == nil && m.Error != "" {
			err = fmt.Errorf("last reading failed: %s", m.Error)
		}
		h.raw = nil
		if err != nil {
			h.markLost(err)
		} else {
			h.last, h.since, h.problem, h.state = m, h.came, nil, live
		}
	}
	late := max(5*time.Second, 3*time.Duration(h.hello.Every)*time.Millisecond)
	if h.state == live && time.Since(h.since) > late {
		h.markLost(errors.New("no data received: a program on this host or the network does not respond"))
	}
	r := report{Key: h.join.key(), Name: cmp.Or(h.hello.Name, h.join.key()), State: h.state, Since: h.since.UnixMilli()}
	if h.state != live {
		if h.problem != nil {
			r.Error = truncateText(words.Clean(h.problem.Error()), 512)
		}
		return r, nil
	}
	if h.last.left > 0 {
		r.Error = fmt.Sprintf("%s more than the page can show", words.Count(h.last.left, "program"))
	}
	r.Machine = h.last.Machine
	programs := make([]program, len(h.last.Domains))
	for i, d := range h.last.Domains {
		d.Host, d.Address = r.Key, r.Key+" "+d.Address
		programs[i] = d
	}
	return r, programs
}

// distinguishNames appends the address to the names in all that several hosts have. mine is the
// name of this machine.
func distinguishNames(mine string, all []report) {
	count := map[string]int{mine: 1}
	for _, r := range all {
		count[r.Name]++
	}
	for i, r := range all {
		if count[r.Name] > 1 && r.Name != r.Key {
			all[i].Name = fmt.Sprintf("%s (%s)", r.Name, r.Key)
		}
	}
}
