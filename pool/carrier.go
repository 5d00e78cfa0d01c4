package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
)

// A carrier is a queue between the pool and one of its workers: an [ipc.Queue], or a
// [localQueue] for a worker on a goroutine. The methods are as for [ipc.Queue].
type carrier[T any] interface {
	Put(ctx context.Context, v T) error
	PutN(ctx context.Context, vs []T) (n int, err error)
	Get(ctx context.Context) (T, error)
	GetN(ctx context.Context, vs []T) (n int, err error)
	TryGet() (T, error)
	Len() int
	Finish() error
	Close() error
}

// A localQueue is a queue between a pool and its worker on a goroutine. It passes values without
// encoding them. As in a message, the shared memory of a queued value has references of its own.
// Only one goroutine may block in Get or GetN, and puts do not block: the pool limits the number of
// values. The other methods may be called from several goroutines.
type localQueue[T any, P message[T]] struct {
	filled chan struct{} // has a token if the queue has changed since the last look of a blocked get

	mu       sync.Mutex
	values   []T
	head     int // index of the oldest value
	finished bool
	closed   bool
}

// A message is a value of a localQueue.
type message[T any] interface {
	*T
	own() error // gets references of its own, as if the value had been encoded and decoded
	discard()   // drops these references
}

func newLocalQueue[T any, P message[T]]() *localQueue[T, P] {
	return &localQueue[T, P]{filled: make(chan struct{}, 1)}
}

// Put puts v, with references of its own to v's shared memory, and never blocks. It returns
// [ipc.ErrClosed] after Finish or Close.
func (q *localQueue[T, P]) Put(_ context.Context, v T) error {
	if err := P(&v).own(); err != nil {
		return err
	}
	q.mu.Lock()
	if q.finished || q.closed {
		q.mu.Unlock()
		P(&v).discard()
		return ipc.ErrClosed
	}
	if q.head > 0 && len(q.values) == cap(q.values) { // move the values instead of growing
		n := copy(q.values, q.values[q.head:])
		clear(q.values[n:])
		q.values, q.head = q.values[:n], 0
	}
	q.values = append(q.values, v)
	q.mu.Unlock()
	q.signal()
	return nil
}

// PutN puts the values in order and returns the number of values put: fewer than len(vs) with
// the error of Put for the next one.
func (q *localQueue[T, P]) PutN(ctx context.Context, vs []T) (n int, err error) {
	for n, v := range vs {
		if err := q.Put(ctx, v); err != nil {
			return n, err
		}
	}
	return len(vs), nil
}

// signal wakes a blocked get, if there is one, or else the next get looks again.
func (q *localQueue[T, P]) signal() {
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// TryGet takes the oldest value, and its references pass to the caller. It returns
// [ipc.ErrEmpty] if there is none, and [ipc.ErrClosed] if none can follow.
func (q *localQueue[T, P]) TryGet() (v T, err error) {
	var one [1]T
	_, err = q.tryGetN(one[:])
	return one[0], err
}

// tryGetN takes up to len(vs) available values into vs and returns their number. The error is
// nil if that is at least 1, and otherwise as for TryGet.
func (q *localQueue[T, P]) tryGetN(vs []T) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = copy(vs, q.values[q.head:])
	clear(q.values[q.head : q.head+n])
	if q.head += n; q.head == len(q.values) {
		q.values, q.head = q.values[:0], 0
	}
	switch {
	case n > 0:
		return n, nil
	case q.finished || q.closed:
		return 0, ipc.ErrClosed
	}
	return 0, ipc.ErrEmpty
}

// Get takes the oldest value, and blocks while the queue is empty. It returns [ipc.ErrClosed] once
// the queue is empty and no put can follow, or the cause of ctx.
func (q *localQueue[T, P]) Get(ctx context.Context) (v T, err error) {
	var one [1]T
	_, err = q.GetN(ctx, one[:])
	return one[0], err
}

// GetN waits for a value, and takes up to len(vs) available values into vs, and returns their
// number. vs must not be empty. The errors are the same as for Get.
func (q *localQueue[T, P]) GetN(ctx context.Context, vs []T) (n int, err error) {
	for {
		if n, err = q.tryGetN(vs); !errors.Is(err, ipc.ErrEmpty) {
			return n, err
		}
		select {
		case <-q.filled:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// Len returns the number of queued values.
func (q *localQueue[T, P]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.values) - q.head
}

// Finish makes puts return [ipc.ErrClosed], and gets once the queue is empty.
func (q *localQueue[T, P]) Finish() error {
	q.mu.Lock()
	q.finished = true
	q.mu.Unlock()
	q.signal()
	return nil
}

// Close discards the queued values. Puts and gets return [ipc.ErrClosed] then.
func (q *localQueue[T, P]) Close() error {
	q.mu.Lock()
	rest := q.values[q.head:]
	q.values, q.head, q.closed = nil, 0, true
	q.mu.Unlock()
	q.signal()
	for i := range rest {
		P(&rest[i]).discard()
	}
	return nil
}

// own implements [message]: it gives the call references of its own to the blocks of its
// arguments.
func (c *call) own() (err error) {
	c.args, err = c.args.clone()
	return err
}

func (c *call) discard() { c.args.releaseBlocks() }

// own implements [message]: it gives the reply references of its own to the blocks of its
// results. The error arrives as it does from another process, so that callers find the same
// errors with every start method.
func (r *reply) own() (err error) {
	if r.err != nil {
		if r.err, err = roundTripError(r.err); err != nil {
			return err
		}
	}
	r.results, err = r.results.clone()
	return err
}

func (r *reply) discard() { r.results.releaseBlocks() }

// roundTripError returns the error sent as another process would receive it. err is not nil if
// sent cannot be encoded or decoded.
func roundTripError(sent error) (received error, err error) {
	p, err := packValues(errorPlan, []error{sent})
	if err != nil {
		return nil, err
	}
	defer p.releaseBlocks()
	err = p.decodeValues(func(d *codec.Decoder) (err error) {
		received, err = decodeNext(errorPlan, d)
		return err
	})
	return received, err
}

// A localLink contains the queues of a worker on a goroutine.
type localLink struct {
	calls   *localQueue[call, *call]
	replies *localQueue[reply, *reply]
}

// localLinks contains the links of the running workers on goroutines by number. A worker gets the
// number in its argument, which is encoded for goroutines as well.
var (
	localLinks    sync.Map // of *localLink by uint64
	lastLocalLink atomic.Uint64
)

// newLocalLink returns a new link and its number, by which findLocalLink finds it. The caller
// must remove it from localLinks.
func newLocalLink() (*localLink, uint64) {
	l := &localLink{newLocalQueue[call](), newLocalQueue[reply]()}
	n := lastLocalLink.Add(1)
	localLinks.Store(n, l)
	return l, n
}

func findLocalLink(n uint64) (*localLink, error) {
	if l, ok := localLinks.Load(n); ok {
		return l.(*localLink), nil
	}
	return nil, fmt.Errorf("pool: link %d of a worker on a goroutine: %w", n, ipc.ErrClosed)
}
