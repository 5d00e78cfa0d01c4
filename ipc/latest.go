package ipc

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Latest has one value, the one that was stored last, for any processes of the domain: weights
// that are replaced while others compute with those before. The caller of Load holds the shared
// memory of its value, as after a Get, and closes it; a later Store does not change it. So a reader
// never sees half of one value and half of another, and a Store waits for no reader.
//
// A value is numbered by its version, from 1. Versions only grow: after a Load, in whatever
// process, no Load returns an older one. The value stays when the process dies that stored it, and
// a process that is killed in the middle of a Store has stored the value or has not.
//
// It travels to other processes, also as part of a worker's argument: a worker that is started
// again loads what is the latest then, and not what it was at its first start. Its methods may be
// called by several goroutines. The zero Latest is closed.
type Latest[T any] struct {
	mu  Mutex // held while a value is stored
	in  Sender[T]
	out Receiver[T]
}

// latestSlots has room for the newest value, the one before it, and what the dead have left until
// it is reaped.
const latestSlots = 8

// NewLatest makes a Latest of v, which stays the caller's to close. The caller closes the Latest.
// The error wraps wire.ErrType if values of type T cannot cross processes.
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

// Store makes v the value and returns its version. v stays the caller's to close. It waits while
// another process stores, which takes as long as to write the message of v.
func (l *Latest[T]) Store(ctx context.Context, v T) (version uint64, err error) {
	err = l.mu.Lock(ctx)
	if errors.Is(err, ErrOwnerDied) {
		err = l.mu.MarkConsistent() // the ring is, whoever dies
	}
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	defer func() { err = errors.Join(err, l.mu.Unlock()) }()
	end := l.in.end
	if err := end.enter(); err != nil {
		return 0, err
	}
	defer end.leave()
	end.ring.DropOld() // what a dead one has left
	if err := l.in.Put(ctx, v); err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	end.ring.DropOld()
	return end.ring.Version(), nil
}

// Load returns the value and its version. The caller closes what the value holds of shared memory.
func (l *Latest[T]) Load() (v T, version uint64, err error) {
	end := l.out.end
	if err := end.enter(); err != nil {
		return v, 0, err
	}
	defer end.leave()
	in := newIncoming(end.d)
	defer in.free()
	if version, err = end.ring.Peek(&in.Message); err != nil {
		return v, 0, shmError(context.Background(), "load", err, ErrEmpty)
	}
	if v, err = read(in, l.out.plan); err != nil {
		return v, 0, fmt.Errorf("load: %w", err)
	}
	return v, version, nil
}

// Version returns the version of the value, 0 if l is closed: to find out without a Load whether
// there is a newer one.
func (l *Latest[T]) Version() uint64 {
	end := l.out.end
	if end.enter() != nil {
		return 0
	}
	defer end.leave()
	return end.ring.Version()
}

// Wait waits until there is a version greater than after, and loads it. With after 0 it is Load.
// A slow caller misses the versions in between. The error wraps that of ctx, or is ErrClosed.
func (l *Latest[T]) Wait(ctx context.Context, after uint64) (v T, version uint64, err error) {
	end := l.out.end
	if err := end.enter(); err != nil {
		return v, 0, err
	}
	defer end.leave()
	if err := end.ring.AwaitNews(ctx, after); err != nil {
		return v, 0, shmError(ctx, "wait", err, nil)
	}
	return l.Load()
}

// Close gives this process's reference back. A Wait that is going on in this process returns
// ErrClosed. Close is idempotent; a process that dies closes what it has.
func (l *Latest[T]) Close() error { return errors.Join(l.mu.Close(), l.in.Close(), l.out.Close()) }

// latestTags are those of [Mutex, Sender, Receiver].
var latestTags = &codec.Tags{Type: "Latest", Fields: []int{3}}

// marshalWire lets a Latest be part of a value that is sent. Its receiver has one of its own, of
// the same value.
func (l *Latest[T]) marshalWire(e *codec.Encoder) error {
	e.Tag(latestTags, 0)
	return errors.Join(l.mu.marshalWire(e), l.in.marshalWire(e), l.out.marshalWire(e))
}

// unmarshalWire is the counterpart of marshalWire. The error is ErrType if it is one of another
// type.
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
	if l.in.end, err = unmarshal(d, latestName[T](), sending); err != nil {
		return err
	}
	if l.out.end, err = unmarshal(d, latestName[T](), receiving); err != nil {
		return err
	}
	if !l.out.end.ring.News() || l.out.end.block != l.in.end.block {
		return fmt.Errorf("%w: the ends of a Latest", ErrNotEnd)
	}
	return nil
}
