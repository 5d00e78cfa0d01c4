package torch

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// A Queue is a Queue or SimpleQueue of multiprocessing, or torch's: one that was made under the
// start method spawn and came as an argument of this process, or one of NewQueue. Its methods may
// be called by several goroutines.
type Queue struct {
	reader, writer *Conn
	readLock       *Semaphore // nil where nobody else reads
	writeLock      *Semaphore
	free           *Semaphore // places, nil for a SimpleQueue
}

// NewQueue makes a Queue for processes of Python that this one starts: pass it to Spawn. It has
// room for size messages, or for as many as the memory where size is 0. The caller closes it when
// those processes are at their end. It is Options{}.NewQueue.
func NewQueue(size int) (*Queue, error) { return Options{}.NewQueue(size) }

// NewSimpleQueue makes a SimpleQueue, which has room for what a pipe holds; see NewQueue.
func NewSimpleQueue() (*Queue, error) { return Options{}.NewSimpleQueue() }

// NewQueue is NewQueue; o.Strategy is that of what is put. Auto is FileDescriptor here: it is not
// known who will get it.
func (o Options) NewQueue(size int) (_ *Queue, err error) {
	q, err := o.NewSimpleQueue()
	if err != nil {
		return nil, err
	}
	if size == 0 {
		size = maxPermits
	}
	if q.free, err = NewBoundedSemaphore(size); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// NewSimpleQueue is NewSimpleQueue; see Options.NewQueue.
func (o Options) NewSimpleQueue() (_ *Queue, err error) {
	if len(o.AuthKey) == 0 {
		o.AuthKey = processKey()
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("new queue: %w", err)
	}
	q := &Queue{reader: newConn(reader, o), writer: newConn(writer, o)}
	q.reader.writes, q.writer.reads = false, false
	q.readLock, err = NewLock()
	if err == nil {
		q.writeLock, err = NewLock()
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// Close closes this process's ends. Other processes that have the queue keep it; those that have
// not opened it yet cannot any more, where this process has made it. Close is idempotent.
func (q *Queue) Close() (err error) {
	for _, c := range []*Conn{q.reader, q.writer} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	for _, s := range []*Semaphore{q.readLock, q.writeLock, q.free} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

// Get receives the next message; see Conn.Recv. Should ctx end it, nothing is lost.
func (q *Queue) Get(ctx context.Context) (any, error) {
	b, err := q.next(ctx)
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	return q.reader.importer(ctx).unmarshal(b)
}

// next reads one message as bytes, under the lock of the readers.
func (q *Queue) next(ctx context.Context) (b []byte, err error) {
	err = holding(ctx, q.readLock, func() error {
		if b, err = q.reader.RecvBytes(ctx); err != nil || q.free == nil {
			return err
		}
		return q.free.Release()
	})
	return b, err
}

// Put sends v; see Conn.Send. It waits while a bounded queue is full.
func (q *Queue) Put(ctx context.Context, v any) error {
	out := q.writer.exporter()
	b, err := out.marshal(v)
	if err == nil {
		err = q.write(ctx, b)
	}
	if err != nil {
		out.undo()
		return fmt.Errorf("put: %w", err)
	}
	return nil
}

func (q *Queue) write(ctx context.Context, b []byte) error {
	if q.free != nil {
		if err := q.free.Acquire(ctx); err != nil {
			return err
		}
	}
	return holding(ctx, q.writeLock, func() error { return q.writer.SendBytes(ctx, b) })
}

// holding runs do under a lock of Python's.
func holding(ctx context.Context, lock *Semaphore, do func() error) error {
	if lock == nil {
		return do()
	}
	if err := lock.Acquire(ctx); err != nil {
		return err
	}
	return errors.Join(do(), lock.Release())
}

// queue writes the state of a queue; see importer.queue.
func (e *exporter) queue(q *Queue) (any, error) {
	state := python.Tuple{}
	for _, c := range []*Conn{q.reader, q.writer} {
		o, err := e.end(c)
		if err != nil {
			return nil, err
		}
		state = append(state, o)
	}
	for _, s := range []*Semaphore{q.readLock, q.writeLock, q.free} {
		low, err := e.Lower(s)
		if err != nil {
			return nil, err
		}
		state = append(state, low)
	}
	if q.free == nil {
		return withState(simpleQueueClass, state[:4]), nil
	}
	return withState(queueClass, append(python.Tuple{false, q.free.max}, append(state, os.Getpid())...)), nil
}

var (
	queueClass       = named("multiprocessing.queues.Queue")
	simpleQueueClass = named("multiprocessing.queues.SimpleQueue")
)

// queue reads the state (ignore_epipe, maxsize, reader, writer, rlock, wlock, sem, pid) of a Queue,
// or (reader, writer, rlock, wlock) of a SimpleQueue.
func (i *importer) queue(o *pickle.Object) (any, error) {
	state, _ := o.State.(python.Tuple)
	q := new(Queue)
	var places any
	switch len(state) {
	case 8:
		places, state = state[6], state[2:6]
	case 4:
	default:
		return nil, protocolError("the state of %s has %d parts", o.Class, len(state))
	}
	parts := append(append(python.Tuple{}, state...), places)
	for n, p := range parts {
		v, err := i.Lift(p)
		if err != nil {
			return nil, err
		}
		parts[n] = v
	}
	var ok bool
	if q.reader, ok = parts[0].(*Conn); !ok {
		return nil, protocolError("the reader of a queue is %T", parts[0])
	}
	if q.writer, ok = parts[1].(*Conn); !ok {
		return nil, protocolError("the writer of a queue is %T", parts[1])
	}
	q.readLock, _ = parts[2].(*Semaphore)
	q.writeLock, _ = parts[3].(*Semaphore)
	q.free, _ = parts[4].(*Semaphore)
	return q, nil
}
