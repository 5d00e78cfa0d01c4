package manager

import (
	"context"
)

// An Event is a flag in the server that callers can wait for.
type Event struct{ typed[Event] }

// NewEvent creates an event with a cleared flag. The caller must close it.
func NewEvent(ctx context.Context, m *Manager) (*Event, error) {
	p, err := create[Event](ctx, m, eventKind)
	return &Event{p}, err
}

// Set sets the flag and wakes all waiting callers.
func (e *Event) Set(ctx context.Context) error { return e.call(ctx, eventChange, in(true)).none() }

// Clear clears the flag.
func (e *Event) Clear(ctx context.Context) error { return e.call(ctx, eventChange, in(false)).none() }

// IsSet reports whether the flag is set.
func (e *Event) IsSet(ctx context.Context) (bool, error) { return one[bool](e.call(ctx, eventIsSet)) }

// Wait blocks until the flag is set. If ctx is done first, Wait returns its error; if the flag is
// set, it returns nil even after the deadline of ctx.
func (e *Event) Wait(ctx context.Context) error { return e.call(ctx, eventWait).none() }

// An event is the server's state of an Event. round counts the calls of Set: callers that waited
// during a Set return even if the flag was cleared since.
type event struct {
	set   bool
	round int
}

// Methods of an Event.
var (
	eventKind = newKind("Event", func(*call) (any, error) { return new(event), nil })

	eventChange = define(eventKind, "set", (*event).change)
	eventIsSet  = define(eventKind, "isset", (*event).isSet)
	eventWait   = define(eventKind, "wait", (*event).wait)
)

func (e *event) change(c *call) error {
	set, err := arg[bool](c, 0)
	if err == nil {
		e.set = set
		if set {
			e.round++
		}
	}
	return err
}

func (e *event) isSet(c *call) error { return give(c, e.set) }

func (e *event) wait(c *call) error {
	if begun, ok := c.arrived.(int); e.set || ok && begun != e.round {
		return nil
	} else if !ok {
		c.arrived = e.round
	}
	return errWait
}
