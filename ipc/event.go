package ipc

import (
	"context"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// An Event is a flag that goroutines in any processes of the domain can wait for. The zero Event is
// closed.
type Event struct{ cell }

const eventName = "Event"

// NewEvent returns an Event with a cleared flag. The caller must close it.
func NewEvent() (*Event, error) {
	o, err := newObject(eventName, arena.SyncOptions{Form: arena.FormEvent})
	if err != nil {
		return nil, err
	}
	return &Event{cell{o}}, nil
}

// Set sets the flag and wakes all waiting goroutines. They return even if the flag is cleared
// immediately afterwards.
func (e *Event) Set() error {
	return e.obj.runOp(context.Background(), "set", nil, func() error { e.shm().Set(); return nil })
}

// Clear clears the flag.
func (e *Event) Clear() error {
	return e.obj.runOp(context.Background(), "clear", nil, func() error { e.shm().Clear(); return nil })
}

// IsSet reports whether the flag is set. It returns false if e is closed.
func (e *Event) IsSet() bool {
	if e.obj.beginOp() != nil {
		return false
	}
	defer e.obj.endOp()
	return e.shm().IsSet()
}

// Wait blocks until the flag is set, and then returns nil. If ctx is done first, it returns an
// error that wraps the error of ctx.
func (e *Event) Wait(ctx context.Context) error {
	return e.obj.runOp(ctx, "wait", nil, func() error { return e.shm().Wait(ctx) })
}

func (e *Event) shm() arena.Event { return arena.Event{Sync: e.obj.sync} }

// unmarshalWire decodes an Event. It returns [ErrType] if the value is of another type.
func (e *Event) unmarshalWire(d *codec.Decoder) (err error) {
	e.obj, err = readObject(d, eventName, arena.FormEvent)
	return err
}
