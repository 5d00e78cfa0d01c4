package trace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
)

const (
	often   = 100 * time.Millisecond // maximum delay before a span is sent
	letters = 256                    // capacity of the queue of letters
	most    = 1 << 16                // maximum number of unsent spans in a process
	each    = 1 << 10                // maximum number of spans in a letter
)

// A Trace is a process's handle to a trace file. [Create] makes it. It can be sent to other
// processes, which get handles of their own and must close them. Its methods may be called from
// several goroutines, and on nil.
type Trace struct {
	sender *ipc.Sender[letter]
	root   *root // only in the process that called Create

	mu     sync.Mutex
	fresh  []trackName // tracks not yet sent
	spans  []span      // spans not yet sent
	lost   int
	timer  *time.Timer
	closed bool

	sending sync.Mutex // serializes letters, so that they keep their order
	zero    time.Time  // reference time in this process
	at      int64      // zero on the machine's monotonic clock, in nanoseconds
}

// A root is the state of the process that writes the file.
type root struct {
	queue  *ipc.Queue[letter]
	file   *file
	stop   context.CancelFunc
	served chan struct{}
	err    error // first error of the file
}

// A letter is a message with tracks and spans from a process to the one that writes the file.
type letter struct {
	PID     int
	Process string // process name
	Tracks  []trackName
	Spans   []span
	Lost    int // number of dropped spans
}

type trackName struct {
	ID   int32
	Name string
}

type span struct {
	Track      int32
	Name       string
	Begin, End int64 // nanoseconds on the machine's monotonic clock
}

// Create creates the file at path, replacing an existing one, and returns a Trace that records
// spans in it. This process writes the file, on a goroutine that runs until Close. The caller
// must close the Trace.
func Create(path string) (*Trace, error) {
	t := newTrace()
	f, err := createFile(path, t.at)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	q, err := ipc.NewQueue[letter](letters)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("trace: create span queue: %w", err), f.closeFile())
	}
	ctx, stop := context.WithCancel(context.Background())
	t.sender = q.Sender()
	t.root = &root{queue: q, file: f, stop: stop, served: make(chan struct{})}
	go t.root.serveQueue(ctx)
	return t, nil
}

func newTrace() *Trace {
	return &Trace{zero: time.Now(), at: int64(sys.Monotonic())}
}

// serveQueue writes the letters from the queue to the file until ctx is done and the queue is
// empty, and then closes r.served. After the first error of the file, which it stores in r.err,
// it discards letters.
func (r *root) serveQueue(ctx context.Context) {
	defer close(r.served)
	for {
		l, err := r.queue.Get(ctx)
		if err != nil && ctx.Err() != nil {
			if l, err = r.queue.TryGet(); err != nil {
				return
			}
		}
		if err == nil && r.err == nil {
			r.err = r.file.writeLetter(l)
		}
	}
}

// tracks is the number of tracks that this process has created.
var tracks atomic.Int32

// Track creates a track of this process with the given name; only its first 200 bytes are shown.
// It returns nil if t is nil. The spans of a track must follow each other or nest, as the
// activities of one goroutine do.
func (t *Trace) Track(name string) *Track {
	if t == nil {
		return nil
	}
	k := &Track{t, tracks.Add(1)}
	t.mu.Lock()
	t.fresh = append(t.fresh, trackName{k.id, shortenName(name)})
	t.mu.Unlock()
	t.Flush() // so that the file shows the worker even if it is killed soon
	return k
}

// addSpan records a finished span. It drops and counts the span if [most] spans are unsent, and
// drops it if t is closed.
func (t *Trace) addSpan(s span) {
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
	t.scheduleFlush()
}

// scheduleFlush schedules a Flush after [often], unless one is scheduled already or t is closed.
// The caller must hold t.mu.
func (t *Trace) scheduleFlush() {
	if t.timer == nil && !t.closed {
		t.timer = time.AfterFunc(often, t.Flush)
	}
}

// Flush sends the recorded spans to the process that writes the file. It does not block: if the
// queue is full, the remaining spans are sent later. It is a no-op if t is nil.
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
	name, _ := sys.ProcessName(os.Getpid()) // without a name, the PID is shown
	for len(fresh)+len(spans)+lost > 0 {
		n := min(each, len(spans))
		err := t.sender.TryPut(letter{os.Getpid(), name, fresh, spans[:n], lost})
		if err != nil {
			t.restoreUnsent(fresh, spans, lost, errors.Is(err, ipc.ErrFull))
			return
		}
		fresh, spans, lost = nil, spans[n:], 0
	}
}

// restoreUnsent puts data that a Flush could not send back, before newer data, if later is true:
// the queue was full. Otherwise it discards the data, without counting it as lost. The caller
// must not hold t.mu.
func (t *Trace) restoreUnsent(fresh []trackName, spans []span, lost int, later bool) {
	if !later {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fresh, t.spans, t.lost = append(fresh, t.fresh...), append(spans, t.spans...), lost+t.lost
	t.scheduleFlush()
}

// Close flushes the spans of this process and stops recording. In the process that called [Create],
// Close also completes the file and returns its errors; other processes should be closed before,
// because spans that arrive later are lost. In another process, Close returns only an error of
// closing the connection to that process. Close is idempotent.
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
	t.Flush() // spans that the full queue rejected
	for r.err == nil {
		l, err := r.queue.TryGet()
		if err != nil {
			break
		}
		r.err = r.file.writeLetter(l)
	}
	if err := errors.Join(r.err, r.file.finishFile(), r.queue.Close()); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

func init() { codec.Custom((*Trace).marshal, (*Trace).unmarshal) }

// marshal encodes the sending end of the queue, so that a Trace may be part of a message.
func (t *Trace) marshal(e *codec.Encoder) error { return codec.Encode(e, *t.sender) }

// unmarshal decodes a Trace, which the receiver must close. Its times refer to this process's
// clock.
func (t *Trace) unmarshal(d *codec.Decoder) error {
	sender, err := codec.Decode[ipc.Sender[letter]](d)
	*t = Trace{zero: time.Now(), at: int64(sys.Monotonic()), sender: &sender}
	return err
}
