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
	// Put sends v, as Conn.Send does. It waits while a bounded queue or the pipe is full. The error
	// is the cause of ctx's end if v's message has not begun by then; nothing is sent then. A
	// message that has begun is on its way: its rest is written when a process reads, also after
	// Close, and Drain waits for that.
	Put(ctx context.Context, v any) error
	// Get receives the next message, as Conn.Recv does, and waits for one. The error is the cause
	// of ctx's end. If a part of a message or of its tensors has come by then, the next Get of this
	// process receives the message, before later ones; no other process can have it. Close drops
	// it, and gives its memory back to its sender.
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
	q.bind()
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
	q.bind()
	return q, nil
}

// bind tells the ends about the locks. A queue's free places are told when they are known.
func (q *pipeQueue) bind() {
	q.reader.lock, q.reader.free, q.writer.lock = q.readLock, q.free, q.writeLock
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
	v, err := q.reader.Recv(ctx)
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	return v, nil
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
	if q.free == nil {
		return q.writer.SendBytes(ctx, b)
	}
	if err := q.free.Acquire(ctx); err != nil {
		return err
	}
	err := q.writer.SendBytes(ctx, b)
	if err != nil {
		err = errors.Join(err, q.free.Release())
	}
	return err
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
	q.bind()
	return q, nil
}
