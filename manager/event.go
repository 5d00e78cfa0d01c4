package manager

import (
	"context"
)

// An Event is a flag in the server. Callers wait until it is set.
type Event struct{ typed[Event] }

// NewEvent makes an event that is not set. The caller closes it.
func NewEvent(ctx context.Context, m *Manager) (*Event, error) {
	p, err := create[Event](ctx, m, eventKind)
	return &Event{p}, err
}

// Set sets the event and wakes every caller that waits.
func (e *Event) Set(ctx context.Context) error { return e.call(ctx, eventChange, in(true)).none() }

// Clear resets the event, so that Wait waits again.
func (e *Event) Clear(ctx context.Context) error { return e.call(ctx, eventChange, in(false)).none() }

// IsSet reports whether the event is set.
func (e *Event) IsSet(ctx context.Context) (bool, error) { return one[bool](e.call(ctx, eventIsSet)) }

// Wait waits until the event is set. The error is that of ctx if ctx ends first; it is nil if the
// event is set, also after the deadline of ctx.
func (e *Event) Wait(ctx context.Context) error { return e.call(ctx, eventWait).none() }

// An event is the state of an Event. round counts how often it was set: those that waited then go
// on, even if it was reset since.
type event struct {
	set   bool
	round int
}

// What can be asked of an Event.
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
