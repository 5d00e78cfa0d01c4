package torch

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// A Queue is a Queue or SimpleQueue of multiprocessing or torch, or a queue.Queue at a manager's
// server. NewQueue makes one, a manager has them, and a process gets those of the start method
// spawn as arguments. Its methods may be called by several goroutines.
type Queue interface {
	// Put sends v, as Conn.Send does. It waits while a bounded queue is full. The error is the
	// cause of ctx's end.
	Put(ctx context.Context, v any) error
	// Get receives the next message, as Conn.Recv does, and waits for one. The error is the cause
	// of ctx's end; nothing is lost then. If ctx ends when a message has come, Get asks its sender
	// for the tensors for up to 10 s more; if the sender does not answer, the message is lost.
	Get(ctx context.Context) (any, error)
	// Len returns the number of messages. The error wraps ErrUnsupported for a SimpleQueue.
	Len(ctx context.Context) (int, error)
	// Close closes this process's ends, or the proxy of a manager's queue. Other processes that
	// have opened the queue keep it. If this process has made it, no other process can open it any
	// more. Close is idempotent.
	Close() error
}

// A pipeQueue is a pipe with locks.
type pipeQueue struct {
	reader, writer *Conn
	readLock       *semaphore // nil if no other process reads
	writeLock      *semaphore
	free           *semaphore // free places; nil for a SimpleQueue
}

// NewQueue makes a Queue for processes of Python that this one starts: pass it to Spawn. It has
// room for size messages, or for as many as memory holds if size is 0. Tensors go by o.Strategy;
// Auto is FileDescriptor here, because the receiver is not known. The caller closes the queue when
// those processes are at their end.
func NewQueue(size int, o Options) (Queue, error) {
	q, err := newPipeQueue(o)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		size = maxPermits
	}
	if q.free, err = newSemaphore(boundedClass, size, int64(size)); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// NewSimpleQueue makes a SimpleQueue for processes of Python that this one starts: pass it to
// Spawn. It has room for as much as a pipe holds. Tensors go by o.Strategy; Auto is FileDescriptor
// here, because the receiver is not known. The caller closes the queue when those processes are at
// their end.
func NewSimpleQueue(o Options) (Queue, error) {
	q, err := newPipeQueue(o)
	if err != nil {
		return nil, err
	}
	return q, nil
}

// newPipeQueue makes the pipe and its locks.
func newPipeQueue(o Options) (_ *pipeQueue, err error) {
	if len(o.AuthKey) == 0 {
		o.AuthKey = processKey()
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("new queue: %w", err)
	}
	q := &pipeQueue{reader: newConn(reader, o), writer: newConn(writer, o)}
	q.reader.writes, q.writer.reads = false, false
	q.readLock, err = newSemaphore(lockClass, 1, 1)
	if err == nil {
		q.writeLock, err = newSemaphore(lockClass, 1, 1)
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (q *pipeQueue) Close() (err error) {
	for _, c := range []*Conn{q.reader, q.writer} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	for _, s := range []*semaphore{q.readLock, q.writeLock, q.free} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

func (q *pipeQueue) Get(ctx context.Context) (any, error) {
	b, err := q.next(ctx)
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	return q.reader.importer(ctx).unmarshal(b)
}

// next reads one message as bytes, under the lock of the readers.
func (q *pipeQueue) next(ctx context.Context) (b []byte, err error) {
	err = holding(ctx, q.readLock, func() error {
		if b, err = q.reader.RecvBytes(ctx); err != nil || q.free == nil {
			return err
		}
		return q.free.Release()
	})
	return b, err
}

func (q *pipeQueue) Len(context.Context) (int, error) {
	if q.free == nil {
		return 0, unsupported("the length of a SimpleQueue")
	}
	return int(q.free.max) - q.free.count(), nil
}

func (q *pipeQueue) Put(ctx context.Context, v any) error {
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

func (q *pipeQueue) write(ctx context.Context, b []byte) error {
	if q.free != nil {
		if err := q.free.Acquire(ctx); err != nil {
			return err
		}
	}
	return holding(ctx, q.writeLock, func() error { return q.writer.SendBytes(ctx, b) })
}

// holding runs do under a lock of Python's.
func holding(ctx context.Context, lock *semaphore, do func() error) error {
	if lock == nil {
		return do()
	}
	if err := lock.Acquire(ctx); err != nil {
		return err
	}
	return errors.Join(do(), lock.Release())
}

// queue writes the state of a queue; see importer.queue.
func (e *exporter) queue(q *pipeQueue) (any, error) {
	state := python.Tuple{}
	for _, c := range []*Conn{q.reader, q.writer} {
		o, err := e.end(c)
		if err != nil {
			return nil, err
		}
		state = append(state, o)
	}
	for _, s := range []*semaphore{q.readLock, q.writeLock, q.free} {
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
	q := new(pipeQueue)
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
	q.readLock, _ = parts[2].(*semaphore)
	q.writeLock, _ = parts[3].(*semaphore)
	q.free, _ = parts[4].(*semaphore)
	return q, nil
}
