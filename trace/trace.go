package trace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/ipc"
)

const (
	often   = 100 * time.Millisecond // from a span to its way to the file
	letters = 256                    // that may be under way
	most    = 1 << 16                // spans of a process that wait for their way
	each    = 1 << 10                // spans of a letter
)

// A Trace is a file of spans, as one process sees it. It travels to other processes. Its methods
// may be called by several goroutines, and for nil.
type Trace struct {
	sender *ipc.Sender[letter]
	root   *root // of the process that has made it

	mu     sync.Mutex
	fresh  []trackName // that no letter has had
	spans  []span      // that no letter has had
	lost   int
	timer  *time.Timer
	closed bool

	sending sync.Mutex // one letter after the other
	zero    time.Time  // of this process
	at      int64      // zero on the clock of the machine, in nanoseconds
}

// A root is what the process has that writes the file.
type root struct {
	queue  *ipc.Queue[letter]
	file   *file
	stop   context.CancelFunc
	served chan struct{}
	err    error // of the file
}

// A letter is what a process tells of itself at once.
type letter struct {
	PID     int
	Process string // its name
	Tracks  []trackName
	Spans   []span
	Lost    int // spans for which there was no room
}

type trackName struct {
	ID   int32
	Name string
}

type span struct {
	Track      int32
	Name       string
	Begin, End int64 // nanoseconds, on the clock of the machine
}

// Create makes the file, in the place of one that is there, and writes to it until Close.
func Create(path string) (*Trace, error) {
	t := newTrace()
	f, err := createFile(path, t.at)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	q, err := ipc.NewQueue[letter](letters)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("trace: make the queue of spans: %w", err), f.close())
	}
	ctx, stop := context.WithCancel(context.Background())
	t.sender = q.Sender()
	t.root = &root{queue: q, file: f, stop: stop, served: make(chan struct{})}
	go t.root.serve(ctx)
	return t, nil
}

func newTrace() *Trace {
	return &Trace{zero: time.Now(), at: int64(sys.Monotonic())}
}

// serve writes what comes, and at the end what has come.
func (r *root) serve(ctx context.Context) {
	defer close(r.served)
	for {
		l, err := r.queue.Get(ctx)
		if err != nil && ctx.Err() != nil {
			if l, err = r.queue.TryGet(); err != nil {
				return
			}
		}
		if err == nil && r.err == nil {
			r.err = r.file.write(l)
		}
	}
}

// tracks numbers those of this process.
var tracks atomic.Int32

// Track makes a track of this process. The spans of one track follow each other or lie in each
// other, as those of one goroutine do.
func (t *Trace) Track(name string) *Track {
	if t == nil {
		return nil
	}
	k := &Track{t, tracks.Add(1)}
	t.mu.Lock()
	t.fresh = append(t.fresh, trackName{k.id, short(name)})
	t.mu.Unlock()
	t.Flush() // so that a worker is there, however soon it is killed
	return k
}

// add notes a span that is over.
func (t *Trace) add(s span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if len(t.spans) >= most {
		t.lost++
		return
	}
	t.spans = append(t.spans, s)
	t.soon()
}

// soon sees to it that letters go. mu is held.
func (t *Trace) soon() {
	if t.timer == nil && !t.closed {
		t.timer = time.AfterFunc(often, t.Flush)
	}
}

// Flush sends what this process has noted on its way to the file. It waits for nothing: for what
// there is no room, it is sent later.
func (t *Trace) Flush() {
	if t == nil {
		return
	}
	t.sending.Lock()
	defer t.sending.Unlock()
	t.mu.Lock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	fresh, spans, lost := t.fresh, t.spans, t.lost
	t.fresh, t.spans, t.lost = nil, nil, 0
	t.mu.Unlock()
	name, _ := sys.ProcessName(os.Getpid()) // where the system does not say, the number has to do
	for len(fresh)+len(spans)+lost > 0 {
		n := min(each, len(spans))
		err := t.sender.TryPut(letter{os.Getpid(), name, fresh, spans[:n], lost})
		if err != nil {
			t.keep(fresh, spans, lost, errors.Is(err, ipc.ErrFull))
			return
		}
		fresh, spans, lost = nil, spans[n:], 0
	}
}

// keep takes back what could not be sent, if it can be later.
func (t *Trace) keep(fresh []trackName, spans []span, lost int, later bool) {
	if !later {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fresh, t.spans, t.lost = append(fresh, t.fresh...), append(spans, t.spans...), lost+t.lost
	t.soon()
}

// Close ends what this process has of the trace. The process that has made it writes the file's
// end, after the others have closed theirs: what comes later is not in the file. The error is that
// of the file. Close is idempotent.
func (t *Trace) Close() error {
	if t == nil {
		return nil
	}
	t.Flush()
	t.mu.Lock()
	was := t.closed
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	if was {
		return nil
	}
	if t.root == nil {
		return t.sender.Close()
	}
	r := t.root
	r.stop()
	<-r.served
	t.Flush() // for which there was no room
	for r.err == nil {
		l, err := r.queue.TryGet()
		if err != nil {
			break
		}
		r.err = r.file.write(l)
	}
	if err := errors.Join(r.err, r.file.finish(), r.queue.Close()); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

func init() { wire.Custom((*Trace).marshal, (*Trace).unmarshal) }

// marshal writes a Trace as its sending end, so that it can be part of a value that is sent.
func (t *Trace) marshal(e *wire.Encoder) error { return wire.Encode(e, *t.sender) }

// unmarshal reads what marshal wrote.
func (t *Trace) unmarshal(d *wire.Decoder) error {
	sender, err := wire.Decode[ipc.Sender[letter]](d)
	*t = Trace{zero: time.Now(), at: int64(sys.Monotonic()), sender: &sender}
	return err
}
