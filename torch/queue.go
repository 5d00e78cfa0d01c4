package torch

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// A Queue is a Queue or SimpleQueue of multiprocessing or torch.multiprocessing, or a queue.Queue
// in a manager's server. [NewQueue] and [NewSimpleQueue] create one for processes to be started,
// [Manager.Queue] creates one in a server, and a process started by Python receives those in its
// arguments. The methods may be called from several goroutines.
type Queue interface {
	// Put sends v as [Conn.Send] does. It blocks while a bounded queue or the pipe is full. If ctx
	// is done before the first byte of the message is written, Put returns [context.Cause] and
	// sends nothing. After the first byte, the rest is written in the background as the queue is
	// read, even after Close; [Drain] waits for it.
	Put(ctx context.Context, v any) error
	// Get receives the next message as [Conn.Recv] does, and blocks until there is one. If ctx is
	// done first, it returns [context.Cause]. If a part of a message or of its tensors has arrived
	// by then, the message is reserved for this process, and the next Get returns it. Close drops
	// such a message and returns its memory to the sender.
	Get(ctx context.Context) (any, error)
	// Len returns the number of messages in the queue. The error wraps [ErrUnsupported] for a
	// SimpleQueue.
	Len(ctx context.Context) (int, error)
	// Close closes the ends of the queue in this process, or the proxy of a manager's queue. Other
	// processes that have opened the queue may continue to use it. If this process created it, no
	// further process can open it. Close is idempotent.
	Close() error
}

// A pipeQueue is a [Queue] that consists of a pipe with a lock for each end, as in
// multiprocessing.queues:
// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/queues.py. newPipeQueue
// creates one, and decodeQueue opens one of another process.
type pipeQueue struct {
	reader, writer *Conn
	readLock       *semaphore // nil if only this process reads
	writeLock      *semaphore
	free           *semaphore // counts the free places; nil for a SimpleQueue
}

// NewQueue creates a multiprocessing.Queue to be passed to [Spawn]. It holds at most size
// messages; 0 means no limit. It panics if size is not in the range from 0 to 2^31-1. Tensors
// are sent by o.Strategy. [Auto] means [FileDescriptor] here, because the receiver is unknown.
// The caller must close the queue after the processes that use it have ended.
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
	q.bindSemaphores()
	return q, nil
}

// NewSimpleQueue creates a multiprocessing.SimpleQueue to be passed to [Spawn]. It holds as much as
// a pipe. Tensors are sent by o.Strategy. [Auto] means [FileDescriptor] here, because the receiver
// is unknown. The caller must close the queue after the processes that use it have ended.
func NewSimpleQueue(o Options) (Queue, error) {
	q, err := newPipeQueue(o)
	if err != nil {
		return nil, err
	}
	return q, nil
}

// newPipeQueue creates the pipe of a queue and the locks of its ends. If o has no authkey, the
// queue uses the key of this process. The caller must close the queue.
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
	q.bindSemaphores()
	return q, nil
}

// bindSemaphores sets the semaphores that the connections of both ends use. It must be called again
// when q.free is set.
func (q *pipeQueue) bindSemaphores() {
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
		return 0, unsupported("SimpleQueue has no length")
	}
	return int(q.free.max) - q.free.permitCount(), nil
}

func (q *pipeQueue) Put(ctx context.Context, v any) error {
	out := q.writer.exporter()
	b, err := out.marshal(v)
	if err == nil {
		err = q.write(ctx, b)
	}
	if err != nil {
		out.withdrawMessage()
		return fmt.Errorf("put: %w", err)
	}
	out.closeTransferred()
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

// encodeQueue encodes the state of q in the form that [importer.decodeQueue] decodes.
func (e *exporter) encodeQueue(q *pipeQueue) (any, error) {
	state := python.Tuple{}
	for _, c := range []*Conn{q.reader, q.writer} {
		o, err := e.encodeEnd(c)
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
		return newInstance(simpleQueueClass, state[:4]), nil
	}
	return newInstance(queueClass, append(python.Tuple{false, q.free.max}, append(state, os.Getpid())...)), nil
}

var (
	queueClass       = named("multiprocessing.queues.Queue")
	simpleQueueClass = named("multiprocessing.queues.SimpleQueue")
)

// decodeQueue decodes the state (ignore_epipe, maxsize, reader, writer, rlock, wlock, sem, pid)
// of a Queue, or (reader, writer, rlock, wlock) of a SimpleQueue, to a *pipeQueue.
func (i *importer) decodeQueue(o *pickle.Object) (any, error) {
	state, _ := o.State.(python.Tuple)
	q := new(pipeQueue)
	var places any
	switch len(state) {
	case 8:
		places, state = state[6], state[2:6]
	case 4:
	default:
		return nil, protocolError("state of %s has %d parts", o.Class, len(state))
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
		return nil, protocolError("reader of a queue is %T, want a connection", parts[0])
	}
	if q.writer, ok = parts[1].(*Conn); !ok {
		return nil, protocolError("writer of a queue is %T, want a connection", parts[1])
	}
	q.readLock, _ = parts[2].(*semaphore)
	q.writeLock, _ = parts[3].(*semaphore)
	q.free, _ = parts[4].(*semaphore)
	q.bindSemaphores()
	return q, nil
}
