package ipc

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Latest holds the most recently stored value of type T. Any process of the domain may replace it
// while others still use the previous value, for example model weights. The result of Load holds
// its own references to shared memory, as after a Get: the caller must close it, and a later Store
// does not change it. A reader therefore never sees a mixture of two values, and Store does not
// wait for readers.
//
// Each value has a version, starting at 1. Versions are monotonic across processes: after a Load,
// no process loads an older version. The value survives the death of the process that stored it. If
// a process is killed during Store, the value is either stored completely or not at all.
//
// A Latest can be sent to other processes, for example in a worker's argument. A restarted worker
// loads the value that is the latest then, not the one at its first start. All methods may be
// called from several goroutines. The zero Latest is closed.
type Latest[T any] struct {
	mu  Mutex // held during Store
	in  Sender[T]
	out Receiver[T]
}

// latestSlots is the ring's capacity. It must fit the newest value, the previous one, and messages
// of dead processes until they are reaped.
const latestSlots = 8

// NewLatest returns a Latest with the initial value v. The caller must close the Latest, and must
// still close v. The error wraps wire.ErrType if values of type T cannot be sent to other
// processes.
func NewLatest[T any](v T) (*Latest[T], error) {
	plan, err := codec.PlanOf[T]()
	if err != nil {
		return nil, fmt.Errorf("new latest: %w", err)
	}
	mu, err := NewMutex()
	if err != nil {
		return nil, fmt.Errorf("new latest: %w", err)
	}
	send, recv, err := makeEnds(arena.RingOptions{Capacity: latestSlots, News: true}, latestName[T](), Block)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("new latest: %w", err), mu.Close())
	}
	l := &Latest[T]{*mu, Sender[T]{send, plan}, Receiver[T]{recv, plan}}
	if _, err := l.Store(context.Background(), v); err != nil {
		return nil, errors.Join(fmt.Errorf("new latest: %w", err), l.Close())
	}
	return l, nil
}

func latestName[T any]() string { return "Latest[" + elemName[T]() + "]" }

// Store replaces the value with v and returns the new version. The caller must still close v.
// Store blocks while another process stores, which takes as long as encoding that value. It
// returns [ErrClosed] if l is closed. If ctx is done before the other process has finished, the
// error wraps the error of ctx.
func (l *Latest[T]) Store(ctx context.Context, v T) (version uint64, err error) {
	err = l.mu.Lock(ctx)
	if errors.Is(err, ErrOwnerDied) {
		err = l.mu.MarkConsistent() // the ring is consistent whenever a process dies
	}
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	defer func() { err = errors.Join(err, l.mu.Unlock()) }()
	end := l.in.end
	if err := end.beginOp(); err != nil {
		return 0, err
	}
	defer end.endOp()
	end.ring.DropOld() // remove messages of a process that died in Store
	if err := l.in.Put(ctx, v); err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	end.ring.DropOld()
	return end.ring.Version(), nil
}

// Load returns the value and its version. The caller must close the shared memory of the value.
// It returns [ErrClosed] if l is closed.
func (l *Latest[T]) Load() (v T, version uint64, err error) {
	end := l.out.end
	if err := end.beginOp(); err != nil {
		return v, 0, err
	}
	defer end.endOp()
	in := newIncoming(end.d)
	defer in.recycle()
	if version, err = end.ring.Peek(&in.Message); err != nil {
		return v, 0, shmError(context.Background(), "load", err, ErrEmpty)
	}
	if v, err = decodeMessage(in, l.out.plan); err != nil {
		return v, 0, fmt.Errorf("load: %w", err)
	}
	return v, version, nil
}

// Version returns the version of the value, or 0 if l is closed. It lets the caller check for a
// newer value without loading it.
func (l *Latest[T]) Version() uint64 {
	end := l.out.end
	if end.beginOp() != nil {
		return 0
	}
	defer end.endOp()
	return end.ring.Version()
}

// Wait blocks until the version is greater than after, and returns the latest value with its
// version. If after is 0, Wait is like Load. A slow caller skips intermediate versions. It
// returns [ErrClosed], or an error that wraps the error of ctx. The caller must close the shared
// memory of the value.
func (l *Latest[T]) Wait(ctx context.Context, after uint64) (v T, version uint64, err error) {
	end := l.out.end
	if err := end.beginOp(); err != nil {
		return v, 0, err
	}
	defer end.endOp()
	if err := end.ring.AwaitNews(ctx, after); err != nil {
		return v, 0, shmError(ctx, "wait", err, nil)
	}
	return l.Load()
}

// Close releases this process's references. Waiting goroutines of this process get [ErrClosed].
// Close is idempotent. The references of a process that dies are released.
func (l *Latest[T]) Close() error { return errors.Join(l.mu.Close(), l.in.Close(), l.out.Close()) }

// latestTags describes the encoding: [Mutex, Sender, Receiver].
var latestTags = &codec.Tags{Type: "Latest", Fields: []int{3}}

// marshalWire encodes references to the Latest. The receiver gets its own references to the same
// value.
func (l *Latest[T]) marshalWire(e *codec.Encoder) error {
	e.Tag(latestTags, 0)
	return errors.Join(l.mu.marshalWire(e), l.in.marshalWire(e), l.out.marshalWire(e))
}

// unmarshalWire decodes a Latest. It returns [ErrType] if the element type differs.
func (l *Latest[T]) unmarshalWire(d *codec.Decoder) (err error) {
	if err := d.OnlyTag(latestTags); err != nil {
		return err
	}
	if err := l.mu.unmarshalWire(d); err != nil {
		return err
	}
	plan, err := codec.PlanOf[T]()
	if err != nil {
		return err
	}
	l.in.plan, l.out.plan = plan, plan
	if l.in.end, err = unmarshalEnd(d, latestName[T](), sending); err != nil {
		return err
	}
	if l.out.end, err = unmarshalEnd(d, latestName[T](), receiving); err != nil {
		return err
	}
	if !l.out.end.ring.News() || l.out.end.block != l.in.end.block {
		return fmt.Errorf("%w: the ends do not form a Latest", ErrNotEnd)
	}
	return nil
}
